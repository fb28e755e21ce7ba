//! Where Palisade's records live: SQLite, and an in-memory reference.
