//! Which place for artefacts a store was first served with.

/// Whether a server may come with another place for artefacts than the store knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The place must be the one that the store knows, if it knows one.
    No,
    /// Somebody has moved all artefacts: this place is the store's from now on.
    Yes,
}
