//! Tests of the rules: scenes in words, one to a row of the tables in `docs/state-machine.md`,
//! and random interleavings. Both run in a [`world::World`], which checks after every step what
//! must hold always.

mod audit;
mod backups;
mod claims;
mod completions;
mod failures;
mod given_back;
mod happenings;
mod heartbeats;
mod interleavings;
mod losses;
mod operations;
mod play;
mod publications;
mod replay;
mod scene;
mod submissions;
mod three_cases;
mod world;
