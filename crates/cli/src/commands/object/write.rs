//! Writes: put, rm, raise.

use std::{
    io::{ErrorKind, Read},
    path::PathBuf,
    process::ExitCode,
    task::Poll,
};

use anyhow::Context;
use bytes::Bytes;
use futures_util::Stream;
use palisade_api::client::{ObjectWrite, file_pieces};
use palisade_core::{LeaseId, Number, ObjectKey, lease::Pair};

use crate::{args::Common, exit::Usage};

use super::{super::inputs::shown, client, show_written};

/// How much of standard input is read at once, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Who writes.
#[derive(Debug, clap::Args)]
struct PairArgs {
    /// The fencing token.
    #[arg(long, env = "PALISADE_TOKEN", value_name = "NUMBER")]
    token: Number,
    /// The lease id that was granted with it.
    #[arg(long, env = "PALISADE_LEASE", value_name = "ID", hide_env_values = true)]
    lease: LeaseId,
}

impl PairArgs {
    const fn pair(&self) -> Pair {
        Pair { token: self.token, lease_id: self.lease }
    }
}

/// Who writes, as which of its writes, and on which conditions.
#[derive(Debug, clap::Args)]
struct HowArgs {
    #[command(flatten)]
    pair: PairArgs,
    /// Which of this holder's writes to this key it is, rising; 1 if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1 << 53))]
    op: Option<u64>,
    /// Only over the version with this `ETag`, or over any (`*`).
    #[arg(long, value_name = "ETAG", conflicts_with = "if_none_match")]
    if_match: Option<String>,
    /// Only where there is nothing to read (`*`).
    #[arg(long, value_name = "*", value_parser = ["*"])]
    if_none_match: Option<String>,
}

impl HowArgs {
    fn write(&self) -> ObjectWrite {
        ObjectWrite {
            pair: self.pair.pair(),
            op: self.op,
            if_match: self.if_match.as_deref().map(quoted),
            if_absent: self.if_none_match.is_some(),
        }
    }
}

/// An `ETag` as the header has it; shells eat the quotes.
fn quoted(etag: &str) -> String {
    let plain = etag.bytes().all(|byte| byte.is_ascii_digit());
    if plain { format!("\"{etag}\"") } else { etag.to_owned() }
}

/// Flags of `object put`.
#[derive(Debug, clap::Args)]
pub(super) struct PutArgs {
    /// The object.
    key: ObjectKey,
    /// The file; `-` is standard input.
    file: PathBuf,
    /// The media type.
    #[arg(long, default_value = "application/octet-stream", value_name = "TYPE")]
    media_type: String,
    #[command(flatten)]
    how: HowArgs,
}

pub(super) async fn put(args: PutArgs, common: &Common) -> anyhow::Result<ExitCode> {
    let client = client(common)?;
    let (key, write) = (&args.key, args.how.write());
    let written = if args.file.as_os_str() == "-" {
        client.put_object(key, &args.media_type, standard_input(), &write).await?
    } else {
        let file = tokio::fs::File::open(&args.file).await;
        let file = file.map_err(|error| {
            Usage(format!("file: {} cannot be read: {error}", shown(&args.file)))
        })?;
        let about = file.metadata().await.context("cannot look at the file")?;
        if about.is_dir() {
            return Err(Usage(format!("file: {} is not a file", shown(&args.file))).into());
        }
        client.put_object(key, &args.media_type, file_pieces(file), &write).await?
    };
    show_written(&written, "written", common.json);
    Ok(ExitCode::SUCCESS)
}

/// Standard input, piece by piece, read on a thread of its own: a read that waits for somebody to
/// type must not keep the process when the server has answered before the end.
fn standard_input() -> impl Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(4);
    let read = move || {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let piece = match std::io::stdin().read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => Ok(Bytes::copy_from_slice(&buffer[..count])),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = piece.is_err();
            // Whoever sends it on has gone: nobody wants the rest.
            if sender.blocking_send(piece).is_err() || failed {
                return;
            }
        }
    };
    let started = std::thread::Builder::new().name("pal-stdin".to_owned()).spawn(read);
    let mut failure = started.err();
    futures_util::stream::poll_fn(move |context| match failure.take() {
        Some(error) => Poll::Ready(Some(Err(error))),
        None => receiver.poll_recv(context),
    })
}

/// Flags of `object rm`.
#[derive(Debug, clap::Args)]
pub(super) struct RmArgs {
    /// The object.
    key: ObjectKey,
    #[command(flatten)]
    how: HowArgs,
}

pub(super) async fn remove(args: RmArgs, common: &Common) -> anyhow::Result<ExitCode> {
    let object = client(common)?.delete_object(&args.key, &args.how.write()).await?;
    show_written(&object, "deleted", common.json);
    Ok(ExitCode::SUCCESS)
}

/// Flags of `object raise`.
#[derive(Debug, clap::Args)]
pub(super) struct RaiseArgs {
    /// The object.
    key: ObjectKey,
    #[command(flatten)]
    pair: PairArgs,
}

pub(super) async fn raise(args: RaiseArgs, common: &Common) -> anyhow::Result<ExitCode> {
    let object = client(common)?.raise_object(&args.key, &args.pair.pair()).await?;
    show_written(&object, "raised", common.json);
    Ok(ExitCode::SUCCESS)
}
