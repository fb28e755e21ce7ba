//! Templates of arguments: text with placeholders.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{InputName, Invalid, OutputName, ParameterName};

/// Text with placeholders, one argument of a program. What a placeholder stands for is put in
/// once and not looked at again, so a value can neither add an argument nor a placeholder.
///
/// | written | stands for |
/// |---|---|
/// | `{input.NAME}` | the path of that input |
/// | `{video.NAME}`, `{audio.NAME}` | the stream of that input to be used, for ffmpeg's `-map 0:…` |
/// | `{rate.NAME}` | the constant frame rate for that stream (`30000/1001`) |
/// | `{pad.NAME}` | by how many seconds the sound of that input outlasts its picture |
/// | `{output}` | the path of the recipe's only output that is not a pattern |
/// | `{output.NAME}` | the path of the output of that name |
/// | `{outputs}` | the folder of outputs |
/// | `{param.NAME}` | the canonical text of that parameter |
/// | `{scratch}` | a private folder for what is needed between steps |
/// | `{fit.width}`, `{fit.height}` | the size by the recipe's `fit` |
/// | `{{`, `}}` | a brace |
///
/// Paths are relative to the folder in which the program runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place(Placeholder),
}

/// What can stand in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placeholder {
    /// `{input.NAME}`
    Input(InputName),
    /// `{video.NAME}`
    Video(InputName),
    /// `{audio.NAME}`
    Audio(InputName),
    /// `{rate.NAME}`
    Rate(InputName),
    /// `{pad.NAME}`
    Pad(InputName),
    /// `{output}`
    OnlyOutput,
    /// `{output.NAME}`
    Output(OutputName),
    /// `{outputs}`
    OutputFolder,
    /// `{param.NAME}`
    Parameter(ParameterName),
    /// `{scratch}`
    Scratch,
    /// `{fit.width}`
    FitWidth,
    /// `{fit.height}`
    FitHeight,
}

/// What the placeholders stand for in one render.
#[derive(Debug, Clone, Default)]
pub struct Values {
    /// Paths of inputs.
    pub inputs: BTreeMap<InputName, String>,
    /// The video streams to be used (a cover picture is none), as ffmpeg's stream specifiers.
    pub video: BTreeMap<InputName, String>,
    /// The audio streams to be used.
    pub audio: BTreeMap<InputName, String>,
    /// The constant frame rates of the video streams.
    pub rate: BTreeMap<InputName, String>,
    /// By how many seconds sounds outlast their pictures.
    pub pad: BTreeMap<InputName, String>,
    /// The folder of outputs.
    pub output_folder: String,
    /// The name of the only output, where there is one.
    pub only_output: Option<OutputName>,
    /// Parameters in canonical text.
    pub parameters: BTreeMap<ParameterName, String>,
    /// The folder for what is needed between steps.
    pub scratch: String,
    /// Width and height by the recipe's `fit`, in pixels.
    pub fit: Option<(u32, u32)>,
}

impl Template {
    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The placeholders in it, in order.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Place(place) => Some(place),
            Piece::Text(_) => None,
        })
    }

    /// The argument with every placeholder replaced. Refused where `values` lack one, which a
    /// valid recipe with resolved parameters and all inputs cannot.
    pub fn expand(&self, values: &Values) -> Result<String, Invalid> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Place(place) => text.push_str(&values.value(place).ok_or_else(|| {
                    Invalid::new("argv", &self.text, "a placeholder in it stands for nothing here")
                })?),
            }
        }
        Ok(text)
    }
}

impl Values {
    fn value(&self, place: &Placeholder) -> Option<String> {
        let output = |name: &OutputName| format!("{}/{name}", self.output_folder);
        match place {
            Placeholder::Input(name) => self.inputs.get(name).cloned(),
            Placeholder::Video(name) => self.video.get(name).cloned(),
            Placeholder::Audio(name) => self.audio.get(name).cloned(),
            Placeholder::Rate(name) => self.rate.get(name).cloned(),
            Placeholder::Pad(name) => self.pad.get(name).cloned(),
            Placeholder::OnlyOutput => self.only_output.as_ref().map(output),
            Placeholder::Output(name) => Some(output(name)),
            Placeholder::OutputFolder => Some(self.output_folder.clone()),
            Placeholder::Parameter(name) => self.parameters.get(name).cloned(),
            Placeholder::Scratch => Some(self.scratch.clone()),
            Placeholder::FitWidth => self.fit.map(|(width, _)| width.to_string()),
            Placeholder::FitHeight => self.fit.map(|(_, height)| height.to_string()),
        }
    }
}

impl Placeholder {
    fn parse(inner: &str) -> Option<Self> {
        match inner {
            "output" => return Some(Self::OnlyOutput),
            "outputs" => return Some(Self::OutputFolder),
            "scratch" => return Some(Self::Scratch),
            "fit.width" => return Some(Self::FitWidth),
            "fit.height" => return Some(Self::FitHeight),
            _ => {}
        }
        let (kind, name) = inner.split_once('.')?;
        match kind {
            "input" => name.parse().ok().map(Self::Input),
            "video" => name.parse().ok().map(Self::Video),
            "audio" => name.parse().ok().map(Self::Audio),
            "rate" => name.parse().ok().map(Self::Rate),
            "pad" => name.parse().ok().map(Self::Pad),
            "output" => name.parse().ok().map(Self::Output),
            "param" => name.parse().ok().map(Self::Parameter),
            _ => None,
        }
    }
}

fn parse_pieces(text: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        literal.push_str(before);
        if let Some(after) = from.strip_prefix("{{") {
            literal.push('{');
            rest = after;
        } else if let Some(after) = from.strip_prefix("}}") {
            literal.push('}');
            rest = after;
        } else {
            let (inner, after) = from.strip_prefix('{')?.split_once('}')?;
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Place(Placeholder::parse(inner)?));
            rest = after;
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    Some(pieces)
}

impl std::str::FromStr for Template {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let bad = || {
            Invalid::new(
                "argv",
                text,
                "placeholders are {input.NAME}, {video.NAME}, {audio.NAME}, {rate.NAME}, \
                 {pad.NAME}, {output}, {output.NAME}, {outputs}, {param.NAME}, {scratch}, {fit.width}, {fit.height}; a brace is written twice; no NUL",
            )
        };
        if text.contains('\0') {
            return Err(bad());
        }
        let pieces = parse_pieces(text).ok_or_else(bad)?;
        Ok(Self { text: text.to_owned(), pieces })
    }
}

impl TryFrom<String> for Template {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.text
    }
}
