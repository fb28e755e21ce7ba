//! What a recipe must be to be run at all, with messages for the operator who wrote it.

use std::collections::BTreeSet;

use super::{InputKind, Placeholder, Recipe, Template, Values};
use crate::{InputName, Invalid, OutputName};

impl Recipe {
    /// Checks everything that the types alone do not: names used once, placeholders that stand
    /// for something, ranges, defaults within them.
    pub fn validate(&self) -> Result<(), Invalid> {
        not_empty("inputs", self.inputs.len())?;
        not_empty("outputs", self.outputs.len())?;
        not_empty("steps", self.steps.len())?;
        unique("inputs", self.inputs.iter().map(|input| input.name.as_str()))?;
        unique("outputs", self.outputs.iter().map(|output| output.name.as_str()))?;
        unique("parameters", self.parameters.iter().map(|p| p.name.as_str()))?;
        positive("time_limit_s", self.time_limit_s)?;
        positive("stall_limit_s", self.stall_limit_s)?;
        self.validate_tool()?;
        self.validate_parameters()?;
        self.validate_steps()?;
        self.validate_outputs()
    }

    /// The name that `{output}` stands for: the only output that is not a pattern.
    pub fn only_output(&self) -> Option<OutputName> {
        let mut exact = self.outputs.iter().filter_map(|output| output.name.exact());
        let only = exact.next();
        if exact.next().is_some() { None } else { only }
    }

    fn validate_tool(&self) -> Result<(), Invalid> {
        let plain = |ch: char| ch.is_ascii_alphanumeric() || "._+-".contains(ch);
        let name = &self.tool.name;
        if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(plain) {
            let allowed = "must be the name of a program in the worker's path, not a path";
            return Err(Invalid::new("tool.name", name, allowed));
        }
        if self.tool.version.as_deref() == Some("") {
            return Err(Invalid::new(
                "tool.version",
                "",
                "must not be empty; leave it out instead",
            ));
        }
        Ok(())
    }

    fn validate_parameters(&self) -> Result<(), Invalid> {
        for parameter in &self.parameters {
            let field = format!("parameters.{}", parameter.name);
            parameter.kind.validate(&field)?;
            if let Some(default) = &parameter.default {
                parameter.canonical(default).map_err(|mut error| {
                    error.field.push_str(".default");
                    error
                })?;
            }
        }
        Ok(())
    }

    fn validate_steps(&self) -> Result<(), Invalid> {
        for (number, step) in self.steps.iter().enumerate() {
            let field = format!("steps[{number}].argv");
            let Some(program) = step.argv.first() else {
                return Err(Invalid::new(field, "[]", "must name a program"));
            };
            if program.as_str().is_empty() || program.placeholders().next().is_some() {
                let allowed = "must begin with the name of a program, without placeholders";
                return Err(Invalid::new(field, program.as_str(), allowed));
            }
            step.argv.iter().try_for_each(|template| self.validate_template(&field, template))?;
        }
        let shares: u64 = self.steps.iter().map(|step| u64::from(step.share_percent)).sum();
        if shares != 0 && shares != 100 {
            let allowed = "the shares of all steps must make 100";
            return Err(Invalid::new("steps.share_percent", &shares.to_string(), allowed));
        }
        Ok(())
    }

    fn validate_template(&self, field: &str, template: &Template) -> Result<(), Invalid> {
        let stands = |place: &Placeholder| match place {
            Placeholder::Input(name) => self.has_input(name),
            Placeholder::Video(name)
            | Placeholder::Audio(name)
            | Placeholder::Rate(name)
            | Placeholder::Pad(name) => self.has_media_input(name),
            Placeholder::Output(name) => {
                self.outputs.iter().any(|output| output.name.exact().as_ref() == Some(name))
            }
            Placeholder::OnlyOutput => self.only_output().is_some(),
            Placeholder::Parameter(name) => self.parameter(name.as_str()).is_some(),
            Placeholder::FitWidth | Placeholder::FitHeight => self.fit.is_some(),
            Placeholder::OutputFolder | Placeholder::Scratch => true,
        };
        if template.placeholders().all(stands) {
            return Ok(());
        }
        let allowed = "a placeholder must name an input, output or parameter that the recipe \
                       declares ({output}: its only one; {fit.…}: with a [fit])";
        Err(Invalid::new(field, template.as_str(), allowed))
    }

    fn validate_outputs(&self) -> Result<(), Invalid> {
        if let Some(fit) = &self.fit {
            self.validate_input_name("fit.input", &fit.input)?;
            self.validate_number("fit.shorter_side_max", &fit.shorter_side_max)?;
        }
        for output in &self.outputs {
            let field = format!("outputs.{}", output.name.as_str());
            if !output.media_type.contains('/') {
                let allowed = "must be a media type such as video/mp4";
                return Err(Invalid::new(
                    format!("{field}.media_type"),
                    &output.media_type,
                    allowed,
                ));
            }
            let Some(verify) = &output.verify else { continue };
            self.validate_input_name(&format!("{field}.verify.input"), &verify.input)?;
            if verify.fit && self.fit.is_none() {
                let allowed = "needs a [fit] in the recipe";
                return Err(Invalid::new(format!("{field}.verify.fit"), "true", allowed));
            }
            let span = verify.duration.as_ref();
            let bounds = span.into_iter().flat_map(|span| [&span.start_s, &span.at_most_s]);
            for template in bounds.flatten() {
                self.validate_number(&format!("{field}.verify.duration"), template)?;
            }
        }
        Ok(())
    }

    /// A template that must come to a number: a literal one, or one parameter.
    fn validate_number(&self, field: &str, template: &Template) -> Result<(), Invalid> {
        let parameters_only =
            template.placeholders().all(|place| matches!(place, Placeholder::Parameter(_)));
        let literal = template.placeholders().next().is_none();
        let number = template
            .expand(&Values::default())
            .is_ok_and(|text| super::decimal::parse(&text, 3).is_some_and(|value| value >= 0));
        if !parameters_only || (literal && !number) {
            let allowed = "must be a number of at most 3 digits after the point, or {param.NAME}";
            return Err(Invalid::new(field, template.as_str(), allowed));
        }
        self.validate_template(field, template)
    }

    fn validate_input_name(&self, field: &str, name: &InputName) -> Result<(), Invalid> {
        if self.has_media_input(name) {
            return Ok(());
        }
        Err(Invalid::new(field, name.as_str(), "must be one of the recipe's media inputs"))
    }

    fn has_media_input(&self, name: &InputName) -> bool {
        self.inputs.iter().any(|input| input.name == *name && input.kind == InputKind::Media)
    }

    fn has_input(&self, name: &InputName) -> bool {
        self.inputs.iter().any(|input| input.name == *name)
    }
}

fn not_empty(field: &str, count: usize) -> Result<(), Invalid> {
    if count == 0 { Err(Invalid::new(field, "[]", "must have at least one")) } else { Ok(()) }
}

fn positive(field: &str, value: u64) -> Result<(), Invalid> {
    if value == 0 { Err(Invalid::new(field, "0", "must be at least 1")) } else { Ok(()) }
}

fn unique<'a>(field: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Invalid::new(field, name, "must be named once"));
        }
    }
    Ok(())
}
