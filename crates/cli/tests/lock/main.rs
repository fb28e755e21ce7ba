//! `palisade lock` and `palisade object`: real processes, real signals, a real server.

#[path = "../common/mod.rs"]
mod common;

mod document;
mod doubt;
mod object;
mod register;
mod register_example;
mod run;
mod stage;
mod story;
mod terminal;
