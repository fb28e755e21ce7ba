//! The server over real HTTP on loopback.

mod bad_input;
mod blobs;
mod claims;
mod faults;
mod good_paths;
mod outputs;
mod sessions;
mod stopping;
mod streams;
mod support;
