//! Reading: get.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use palisade_api::client::{Download, Part};
use palisade_core::{Invalid, ObjectKey};
use tokio::io::AsyncWriteExt;

use crate::args::Common;

use super::{
    super::inputs::{random_id, shown},
    client,
};

/// Flags of `object get`.
#[derive(Debug, clap::Args)]
pub(super) struct GetArgs {
    /// The object.
    key: ObjectKey,
    /// Where to: a file, or `-` for standard output.
    #[arg(short, long = "out", default_value = "-", value_name = "PATH")]
    out: PathBuf,
    /// A part alone, in bytes: `0-99`, `100-` from there to the end, `-100` the last hundred.
    #[arg(long, value_name = "RANGE", value_parser = part, allow_hyphen_values = true)]
    range: Option<Part>,
}

fn part(text: &str) -> Result<Part, Invalid> {
    let bad = || {
        let allowed = "must be FIRST-LAST, FIRST- or -COUNT, in bytes";
        Invalid::new("range", text, allowed)
    };
    let number = |text: &str| text.parse::<u64>().map_err(|_| bad());
    match text.split_once('-').ok_or_else(bad)? {
        ("", count) => Ok(Part::Last(number(count)?)),
        (first, "") => Ok(Part::From(number(first)?)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if first > last { Err(bad()) } else { Ok(Part::Between(first, last)) }
        }
    }
}

pub(super) async fn run(args: GetArgs, common: &Common) -> anyhow::Result<ExitCode> {
    let download = client(common)?.object(&args.key, args.range).await?;
    if args.out.as_os_str() == "-" {
        print(download.bytes).await?;
    } else {
        let written = write(download.bytes, &args.out).await;
        written.with_context(|| format!("cannot write {}", shown(&args.out)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Nothing half-written ever stands under the name: it is written beside it, and renamed.
async fn write(mut bytes: Download, path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let partial = folder.unwrap_or(Path::new(".")).join(format!(".palisade-{}", random_id()));
    let done = async {
        let mut file = tokio::fs::File::create_new(&partial).await?;
        while let Some(piece) = bytes.next().await? {
            file.write_all(&piece).await?;
        }
        file.flush().await?;
        file.sync_all().await?;
        anyhow::Ok(tokio::fs::rename(&partial, path).await?)
    };
    let done = done.await;
    if done.is_err() {
        // The first error is the one to tell.
        let _ = tokio::fs::remove_file(&partial).await;
    }
    done
}

/// To standard output. It blocks, and nothing else runs meanwhile.
async fn print(mut bytes: Download) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    while let Some(piece) = bytes.next().await? {
        match out.write_all(&piece) {
            // A reader that has seen enough (`| head`) is no error.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.context("cannot write to standard output")?,
        }
    }
    out.flush().context("cannot write to standard output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_people_write_them() {
        assert_eq!(part("0-99").unwrap(), Part::Between(0, 99));
        assert_eq!(part("100-").unwrap(), Part::From(100));
        assert_eq!(part("-100").unwrap(), Part::Last(100));
        for bad in ["", "-", "5", "9-1", "a-b", "--5", "1-2-3"] {
            assert!(part(bad).is_err(), "{bad:?}");
        }
    }
}
