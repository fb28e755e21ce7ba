//! Tests against a real server.

mod cluster;
mod comparison;
mod contract;
mod faults;
mod servers;
