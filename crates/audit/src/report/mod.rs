//! Shows findings: as JSON, as a text for people, and as one self-contained HTML file.

mod html;
mod json;
mod text;

pub use html::html;
pub use json::json;
pub use text::text;

use crate::event::Source;
use crate::findings::Findings;
use crate::read::Tally;
use crate::skew::Skew;
use crate::timeline::Timeline;

/// A file of a history, and how its reading went.
#[derive(Debug, Clone)]
pub struct File {
    /// Its name, as it was given.
    pub name: String,
    /// What its reader came across.
    pub tally: Tally,
    /// What its clock was corrected by; none for a single file.
    pub skew: Option<Skew>,
}

/// All that a report tells.
#[derive(Debug)]
pub struct Report<'a> {
    /// What was found.
    pub findings: &'a Findings,
    /// The files, by their index.
    pub files: &'a [File],
    /// Timelines of resources with findings; those that are missing are left out.
    pub timelines: &'a [Timeline],
}

impl Report<'_> {
    /// How many lines could not be read, over all files.
    pub fn unreadable_lines(&self) -> u64 {
        self.files.iter().map(|file| file.tally.unreadable_lines).sum()
    }

    fn file_name(&self, source: Source) -> &str {
        self.files.get(source.file as usize).map_or("?", |file| &file.name)
    }

    fn timeline(&self, resource: &str) -> Option<&Timeline> {
        self.timelines.iter().find(|timeline| timeline.resource == resource)
    }
}
