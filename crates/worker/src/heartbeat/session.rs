//! The session: one streaming answer, through which lost and cancelled reach the keepers at once.
//! Its end is how the server sees a dead worker fast, and how a worker sees a dead connection.

use std::sync::Arc;

use palisade_api::wire::SessionEvent;
use palisade_core::keeper::AbortReason;

use crate::{
    backoff::Backoff,
    control_plane::{Connector, ControlPlane, SessionEvents},
    desk::Desk,
    leases::Told,
    timer::{sleep_ms, within_ms},
};

/// The server says something every few seconds; after this long a connection is dead, in ms.
const SILENCE_MS: u64 = 20_000;
/// How long the opening may take, in ms.
const OPENING_MS: u64 = 10_000;

/// Opens the stream, listens, and opens it again when it breaks. Never returns.
pub(super) async fn watch(desk: Arc<Desk>, connector: Arc<dyn Connector>) {
    let mut backoff = Backoff::new(100, 5_000);
    loop {
        // A new connection each time: the old one's other streams may be dead like it.
        if let Some(mut stream) = open(&desk, &*connector).await
            && listen(&desk, &mut *stream).await
        {
            backoff.reset();
            desk.session_broke();
        }
        sleep_ms(&*desk.timer, backoff.next_ms(&*desk.entropy)).await;
    }
}

async fn open(desk: &Desk, connector: &dyn Connector) -> Option<Box<dyn SessionEvents>> {
    let plane: Box<dyn ControlPlane> = connector.connect().ok()?;
    let session = desk.session();
    let opening = plane.session(desk.config.name.as_str(), session.as_str());
    within_ms(&*desk.timer, OPENING_MS, opening).await?.ok()
}

/// Passes on what the stream says until it ends. Answers whether it was ever open.
async fn listen(desk: &Desk, stream: &mut dyn SessionEvents) -> bool {
    let mut was_open = false;
    while let Some(Ok(Some(event))) = within_ms(&*desk.timer, SILENCE_MS, stream.next()).await {
        was_open = true;
        match event {
            // What was closed while no stream was open was told to nobody.
            SessionEvent::Open => desk.session_opened(),
            SessionEvent::Ping => {}
            SessionEvent::Lost { job, token, reason } => {
                desk.tell(Told { job, token, reason: AbortReason::Lost, detail: Some(reason) });
            }
            SessionEvent::Cancelled { job, token } => {
                desk.tell(Told { job, token, reason: AbortReason::Cancelled, detail: None });
            }
        }
    }
    was_open
}
