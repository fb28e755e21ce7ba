//! Suites that every backend must pass.
