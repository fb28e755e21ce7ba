//! A connection in the middle of something.

use std::ops::Deref;

use deadpool_postgres::{Client, Object};

/// A connection that is not to be found in the pool as it is now: in a transaction, or not looked at.
/// Dropped like that, because its caller hung up for instance, it is closed.
pub(super) struct Busy(Option<Client>);

impl Busy {
    pub(super) fn new(client: Client) -> Self {
        Self(Some(client))
    }

    /// It may be used by anybody again.
    pub(super) fn done(mut self) -> Client {
        self.0.take().expect("it is taken here and by the drop alone")
    }
}

impl Deref for Busy {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.0.as_ref().expect("it is taken at the end alone")
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}
