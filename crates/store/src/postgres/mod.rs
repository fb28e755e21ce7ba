//! Many servers on one PostgreSQL. The rules are the same, and so are the operations: what is
//! here is how records are fetched, locked and written.
//!
//! A batch is one transaction (`batch`): what its commands name (`hints`) is fetched and locked
//! in one round of pipelined statements (`fetch`), the operations run over it in memory
//! (`overlay`), and what changed is written and committed in a second round (`flush`). Where an
//! operation asks for something that was not fetched, it is fetched, and all run again: they are
//! pure, so nothing has to be undone. Nothing that decides anything lives in a server's memory.

mod address;
mod batch;
mod batcher;
mod busy;
mod clock;
mod engine;
mod fetch;
mod flush;
mod hints;
mod identity;
mod life;
mod news;
mod open;
mod overlay;
mod reading;
mod records;
mod schema;
mod session;
mod shelf;
mod snapshot;
mod statements;
mod store;
mod tick;
mod trouble;
mod values;
mod wants;

#[cfg(test)]
mod tests;

pub use address::{Address, AddressError};
pub use clock::TimeSource;
pub use identity::JUMP;
pub use life::GAP_MS;
pub use open::{OpenError, PostgresOptions, raise_tokens};
pub use snapshot::PostgresSnapshot;
pub use store::PostgresStore;
