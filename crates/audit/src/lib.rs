//! Reads a history of grants and effects and tells what went wrong.
//!
//! [`read`] turns lines of somebody's log into [`event::Entry`]s; [`findings`] takes entries as
//! they come and answers what happened, to whom and why; [`report`] and [`timeline`] show it to
//! people. Palisade's own history becomes entries too ([`own`]) and takes the same road; [`records`]
//! looks at the records that it tells of.
//!
//! Pure: no IO, no clock, no randomness. Must not know where a history came from.

pub mod event;
pub mod findings;
mod names;
pub mod own;
pub mod read;
pub mod records;
pub mod report;
pub mod skew;
pub mod timeline;
pub mod words;

pub use event::{Entry, EventKind, Source};
pub use findings::{Analyser, Finding, Findings, Settings};
