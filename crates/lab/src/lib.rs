//! Attacks Palisade: simulator, model checker, drill.
