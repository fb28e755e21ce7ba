//! `events`: the journal of the whole server, from any position on.

use std::{process::ExitCode, time::Duration};

use palisade_api::{ClientError, EventStream, EventsFrom, wire::EventView};

use crate::{args::Common, output};

use super::client;

/// How long to wait before a server that has gone is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Flags of `events`.
#[derive(Debug, clap::Args)]
pub(crate) struct EventsArgs {
    /// Go on with what comes, and come back when the server was away.
    #[arg(long)]
    follow: bool,
    /// Only entries after this position, or after `now` [default: all that the journal has].
    #[arg(long, value_name = "POSITION", value_parser = parse_after)]
    after: Option<EventsFrom>,
}

fn parse_after(text: &str) -> Result<EventsFrom, String> {
    match text {
        "now" => Ok(EventsFrom::Now),
        _ => text
            .parse()
            .map(EventsFrom::After)
            .map_err(|_| "must be a position, or `now`".to_owned()),
    }
}

pub(crate) async fn run(args: EventsArgs, common: Common) -> anyhow::Result<ExitCode> {
    let client = client(&common)?;
    let mut from = args.after.unwrap_or(EventsFrom::Beginning);
    // A server that is not there to begin with is an error; one that goes comes back.
    let mut stream = client.events(from, args.follow).await?;
    loop {
        let ended = show_all(&mut stream, &mut from, common.json).await;
        match ended {
            Ok(Ended::NobodyReads) => return Ok(ExitCode::SUCCESS),
            Ok(Ended::ByServer) if !args.follow => return Ok(ExitCode::SUCCESS),
            Ok(Ended::ByServer) => {}
            Err(error) if args.follow && error.is_unconfirmed() => {}
            Err(error) => return Err(error.into()),
        }
        stream = loop {
            tokio::time::sleep(AGAIN).await;
            match client.events(from, true).await {
                Ok(stream) => break stream,
                Err(error) if error.is_unconfirmed() => {}
                Err(error) => return Err(error.into()),
            }
        };
    }
}

/// Why showing ended.
enum Ended {
    /// The server ended the stream.
    ByServer,
    /// Whoever read what is printed has gone (`| head`).
    NobodyReads,
}

/// Shows what comes until the stream ends; `from` follows.
async fn show_all(
    stream: &mut EventStream,
    from: &mut EventsFrom,
    json: bool,
) -> Result<Ended, ClientError> {
    while let Some(entry) = stream.next().await? {
        *from = EventsFrom::After(entry.position);
        if !output::try_line(&shown(&entry, json)) {
            return Ok(Ended::NobodyReads);
        }
    }
    Ok(Ended::ByServer)
}

/// An entry as a line; as JSON for programs that read as it comes.
fn shown(entry: &EventView, json: bool) -> String {
    if json {
        return serde_json::to_string(entry).expect("wire types always serialise");
    }
    let EventView { position, event } = entry;
    let at = output::clock_time(event.at.0);
    format!("{position:>8}  {at}  {}  {}", event.subject, event.what)
}
