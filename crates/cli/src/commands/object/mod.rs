//! `object`: fenced objects.

mod get;
mod write;

use std::process::ExitCode;

use palisade_api::{client::ObjectHead, wire::ObjectView};
use palisade_core::ObjectKey;

use crate::{args::Common, output};

use super::client;

/// What `--help` says at its end.
const HELP: &str = "Writes show a pair: the token and lease id of a lock (`palisade lock` sets \
them in its command's environment) or of a job's attempt. A pair that has been replaced is refused \
with exit code 5, from the moment of the newer grant on. Further writes of one holder to one key \
are numbered with --op, rising.";

/// Flags of `object`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct ObjectArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Write an object: from a file, or from standard input.
    Put(write::PutArgs),
    /// Read an object, or a part of it: to a file, or to standard output.
    Get(get::GetArgs),
    /// Show what is told of an object.
    Head(HeadArgs),
    /// List objects by their keys.
    Ls(LsArgs),
    /// Delete an object. Its fence stays.
    Rm(write::RmArgs),
    /// Raise an object's fence without writing: older holders are refused from now on.
    Raise(write::RaiseArgs),
}

/// Flags of `object head`.
#[derive(Debug, clap::Args)]
struct HeadArgs {
    /// The object.
    key: ObjectKey,
}

/// Flags of `object ls`.
#[derive(Debug, clap::Args)]
struct LsArgs {
    /// Only those whose keys begin so.
    #[arg(default_value = "")]
    prefix: String,
    /// At most so many.
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: u32,
    /// Where the page begins: the last page's `next_cursor`.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<ObjectKey>,
}

pub(crate) async fn run(args: ObjectArgs, common: Common) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::Put(args) => write::put(args, &common).await,
        Verb::Get(args) => get::run(args, &common).await,
        Verb::Head(args) => head(&args.key, &common).await,
        Verb::Ls(args) => list(&args, &common).await,
        Verb::Rm(args) => write::remove(args, &common).await,
        Verb::Raise(args) => write::raise(args, &common).await,
    }
}

/// What `head` prints as JSON.
#[derive(serde::Serialize)]
struct HeadShown<'a> {
    key: &'a ObjectKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<&'a str>,
}

async fn head(key: &ObjectKey, common: &Common) -> anyhow::Result<ExitCode> {
    let head = client(common)?.object_head(key).await?;
    let ObjectHead { token, fence, etag, media_type, size_bytes } = &head;
    if common.json {
        output::json(&HeadShown {
            key,
            token: *token,
            fence: *fence,
            etag: etag.as_deref(),
            size_bytes: *size_bytes,
            media_type: media_type.as_deref(),
        });
        return Ok(ExitCode::SUCCESS);
    }
    let number = |number: &Option<u64>| number.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mut table = output::table(["key", "token", "fence", "etag", "size", "media type"]);
    table.add_row([
        key.to_string(),
        number(token),
        number(fence),
        text(etag),
        number(size_bytes),
        text(media_type),
    ]);
    output::line(&table.to_string());
    Ok(ExitCode::SUCCESS)
}

async fn list(args: &LsArgs, common: &Common) -> anyhow::Result<ExitCode> {
    let cursor = args.cursor.as_ref().map(ObjectKey::as_str);
    let list = client(common)?.objects(&args.prefix, cursor, args.limit).await?;
    if common.json {
        output::json(&list);
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = output::table(["key", "token", "fence", "version", "size", "media type"]);
    for object in &list.objects {
        table.add_row([
            object.key.clone(),
            object.token.to_string(),
            object.fence.to_string(),
            object.version.to_string(),
            object.size_bytes.map_or_else(|| "-".to_owned(), |size| size.to_string()),
            object.media_type.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    output::line(&table.to_string());
    if let Some(cursor) = list.next_cursor {
        output::note(&format!("more: --cursor {cursor}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a write came to.
fn show_written(object: &ObjectView, did: &str, json: bool) {
    if json {
        output::json(object);
    } else {
        let ObjectView { key, token, version, fence, .. } = object;
        output::line(&format!(
            "{key}: {did}; version {version} by token {token}, the fence stands at {fence}"
        ));
    }
}
