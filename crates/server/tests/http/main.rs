//! The server over real HTTP on loopback.

mod good_paths;
mod support;
