//! The server over real HTTP on loopback.

mod good_paths;
mod locks;
mod objects;
mod support;
