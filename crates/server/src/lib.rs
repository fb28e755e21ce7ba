//! The HTTP face of Palisade.
