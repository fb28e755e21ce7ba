//! What the tests put in the place of the world: a clock that stands until it is moved, a server
//! whose answers can be lost, a runner that renders when it is told to.

mod bench;
mod clock;
mod runner;
mod server;
mod verbs;

pub(crate) use bench::{Bench, TTL_MS, recipe};
pub(crate) use runner::{ScriptedRunner, rendered_failure};
pub(crate) use server::{Fault, Standing, State, Verb};
