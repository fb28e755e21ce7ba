//! `palisade lock` and `palisade object`: real processes, real signals, a real server.

#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code, reason = "the tests of the artefacts use all of it")]
#[path = "../../../artefacts/src/bucket/tests/servers.rs"]
mod servers;

mod document;
mod doubt;
mod guard_example;
mod object;
mod register;
mod register_example;
mod run;
mod stage;
mod story;
mod terminal;
mod told;
