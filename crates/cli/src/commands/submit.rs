//! `submit`: records a wish and prints the job's id.

use std::{path::PathBuf, process::ExitCode};

use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::{args::Common, output};

use super::{client, inputs};

/// Flags of `submit`.
#[derive(Debug, clap::Args)]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    wish: inputs::WishArgs,
    /// An input of the recipe; may be given several times.
    #[arg(long = "input", value_name = "NAME=FILE",
          value_parser = OsStringValueParser::new().try_map(|text| inputs::file_pair(&text)))]
    inputs: Vec<(String, PathBuf)>,
}

pub(crate) async fn run(args: SubmitArgs, common: Common) -> anyhow::Result<ExitCode> {
    inputs::check_files(&args.inputs)?;
    let client = client(&common)?;
    let wish = inputs::wish(&client, &args.wish, &args.inputs).await?;
    let submitted = inputs::submit(&client, &wish).await?;
    if common.json {
        output::json(&submitted);
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&submitted.job);
    let how = match (submitted.cached, submitted.deduplicated) {
        (true, _) => "it was rendered already",
        (false, true) => "it joined a job that is under way",
        (false, false) => "a new job",
    };
    output::note(&format!("submission {}: {how}", submitted.submission));
    Ok(ExitCode::SUCCESS)
}
