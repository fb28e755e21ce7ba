//! Reads a history of grants and effects and tells what went wrong.
