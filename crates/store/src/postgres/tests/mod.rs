//! Tests against a real server.

mod cluster;
mod contract;
