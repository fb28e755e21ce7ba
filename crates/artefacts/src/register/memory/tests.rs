//! The reference under the suite that every store passes: with versions that are counted, and with
//! versions that are hashes, where equal bytes could pass for each other.

mod counted {
    use std::{future::ready, sync::Arc};

    use crate::{conformance::cells::Bench, register::MemoryCells};

    crate::register_conformance!(ready(Bench {
        cells: Arc::new(MemoryCells::new()),
        keep: Box::new(())
    }));
}

mod hashed {
    use std::{future::ready, sync::Arc};

    use crate::{conformance::cells::Bench, register::MemoryCells};

    crate::register_conformance!(ready(Bench {
        cells: Arc::new(MemoryCells::with_hashed_versions()),
        keep: Box::new(())
    }));
}
