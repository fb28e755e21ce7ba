//! Connections: taken in, bounded in number, ended politely.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// How long a connection may be silent between requests, or take over a request's head. Longer
/// than clients keep theirs unused, so that it is the client who closes.
const SILENCE_MAX: Duration = Duration::from_mins(2);
/// How long to wait when no connection can be taken: the process has no descriptors left.
const BREATH: Duration = Duration::from_millis(100);

/// Serves until told to stop, then until every connection has ended its request.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    connections_max: usize,
    stopping: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(connections_max));
    let mut connections = JoinSet::new();
    loop {
        let place = tokio::select! {
            biased;
            () = stopping.cancelled() => break,
            place = Arc::clone(&places).acquire_owned() => place.expect("it is never closed"),
        };
        let accepted = tokio::select! {
            biased;
            () = stopping.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (router, stopping) = (router.clone(), stopping.clone());
                connections.spawn(async move {
                    serve_one(stream, router, stopping).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot take a connection");
                tokio::time::sleep(BREATH).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve_one(stream: TcpStream, router: Router, stopping: CancellationToken) {
    // An answer is one small write; waiting for more of it would only add to its time.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}
