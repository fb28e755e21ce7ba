//! From the arguments to how the logs are read.

use anyhow::{Context, bail};
use palisade_audit::read::{Format, Profile, Translation, built_in, built_in_names, parse_span_ms};

use super::DiagnoseArgs;

/// Profiles first, so that what is said by itself overrides them.
pub(super) fn translation(args: &DiagnoseArgs) -> anyhow::Result<Translation> {
    let mut translation = Translation::new();
    for name in &args.profile {
        translation.profile(&profile(name)?)?;
    }
    if let Some(name) = &args.format {
        let Some(format) = Format::from_name(name) else {
            bail!("format: {name:?} is not allowed; must be json, csv, logfmt or pattern");
        };
        translation.set_format(format);
    }
    for pattern in &args.pattern {
        translation.pattern(pattern).with_context(|| format!("pattern {pattern:?}"))?;
    }
    for map in &args.map {
        translation.map(map)?;
    }
    for event in &args.event {
        translation.word(event)?;
    }
    if let Some(text) = &args.ttl {
        let Some(ttl_ms) = parse_span_ms(text) else {
            bail!("ttl: {text:?} is not allowed; must be a span such as 30s, 5m or 1500ms");
        };
        translation.set_ttl_ms(ttl_ms);
    }
    if let Some(year) = args.year {
        if !(1970..=9999).contains(&year) {
            bail!("year: {year} is not allowed; must be 1970 to 9999");
        }
        translation.set_year(year);
    }
    Ok(translation)
}

fn profile(name: &str) -> anyhow::Result<Profile> {
    if let Some(profile) = built_in(name) {
        return Ok(profile);
    }
    let names: Vec<&str> = built_in_names().collect();
    let text = std::fs::read_to_string(name).with_context(|| {
        format!(
            "profile: {name:?} is not a built-in one ({}), nor a file that can be read",
            names.join(", ")
        )
    })?;
    Profile::parse(&text).with_context(|| format!("profile {name}"))
}
