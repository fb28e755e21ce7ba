//! The server over real HTTP on loopback.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod artefacts;
mod bad_input;
mod blobs;
mod claims;
mod faults;
mod good_paths;
mod guard;
mod journal;
mod locks;
mod objects;
mod openapi;
mod outputs;
mod publications;
mod readiness;
mod restart;
mod sessions;
mod stopping;
mod streams;
mod support;
mod two_servers;
mod webhooks;
