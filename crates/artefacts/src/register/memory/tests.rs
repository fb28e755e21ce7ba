//! The reference under the suite that every store passes.

use std::{future::ready, sync::Arc};

use super::MemoryCells;
use crate::conformance::cells::Bench;

crate::register_conformance!(ready(Bench {
    cells: Arc::new(MemoryCells::new()),
    keep: Box::new(())
}));
