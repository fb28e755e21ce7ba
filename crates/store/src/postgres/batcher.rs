//! Group commit: each connection that is free takes whatever requests are waiting, runs them as one
//! batch, and answers all after its commit. The busier it is, the larger the batches.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc, oneshot};

use crate::{
    command::{Answer, Command},
    failure::Failure,
};

use super::engine::Engine;

/// Commands of one call, and where their answers go.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) commands: Vec<Command>,
    pub(super) reply: oneshot::Sender<Vec<Result<Answer, Failure>>>,
}

/// Most commands in a transaction, unless one request alone has more: whoever comes first waits
/// for the last.
const COMMANDS_MAX: usize = 500;

/// What is waiting, shared by all who take from it.
pub(super) type Waiting = Arc<Mutex<mpsc::UnboundedReceiver<Request>>>;

/// Serves until every sender has gone.
pub(super) async fn serve(engine: Arc<Engine>, waiting: Waiting) {
    while let Some(requests) = take(&waiting).await {
        let mut commands = Vec::new();
        let mut replies = Vec::with_capacity(requests.len());
        for request in requests {
            replies.push((request.commands.len(), request.reply));
            commands.extend(request.commands);
        }
        let batch = engine.apply_batch(commands).await;
        let mut answers = batch.answers.into_iter();
        for (count, reply) in replies {
            // Whoever has stopped waiting does not want the answer.
            let _ = reply.send(answers.by_ref().take(count).collect());
        }
    }
}

async fn take(waiting: &Waiting) -> Option<Vec<Request>> {
    let mut waiting = waiting.lock().await;
    let mut requests = vec![waiting.recv().await?];
    let mut commands = requests[0].commands.len();
    while commands < COMMANDS_MAX
        && let Ok(next) = waiting.try_recv()
    {
        commands += next.commands.len();
        requests.push(next);
    }
    Some(requests)
}
