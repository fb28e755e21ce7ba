//! The story that fences are for, with real processes and real signals, for each kind of effect
//! that the server has: A is granted the work and stopped; B is granted it and writes; A wakes,
//! writes, and is refused with B's number named; B's effect stands, and no reader ever saw A's.
//! Also where B dies before it has written anything, and where a stranger shows B's number.
//!
//! Objects and registers have theirs beside `palisade lock`, databases beside the kit.

#[path = "../common/mod.rs"]
mod common;

mod exports;
mod notifications;
mod publications;
mod reader;
mod worker;
