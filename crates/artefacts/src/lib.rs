//! Immutable blobs named by their digest.
