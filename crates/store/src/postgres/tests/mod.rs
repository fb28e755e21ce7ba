//! Tests against a real server.

mod cluster;
mod comparison;
mod contract;
mod cut;
mod failover;
mod faults;
mod notified;
mod plans;
mod renewals;
mod servers;
mod standby;
mod stopped;
mod strangers;
mod tls;
mod under_a_grant;
