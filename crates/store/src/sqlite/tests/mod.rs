//! What SQLite adds to the contract: durability, restarts, full disks, one process to a folder.

mod cycle;
