use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

/// A recipe with one parameter of each kind, and `change` made to its JSON.
fn recipe_with(change: impl FnOnce(&mut Value)) -> Result<Recipe, String> {
    let mut value = json!({
        "name": "demo",
        "tool": { "name": "ffmpeg" },
        "inputs": [{ "name": "source", "needs": ["video"] }],
        "outputs": [{ "name": "video.mp4", "media_type": "video/mp4" }],
        "parameters": [
            { "name": "crf", "type": "integer", "min": -1, "max": 51, "default": "23" },
            { "name": "gain", "type": "decimal", "min": "-1.5", "max": "10", "digits": 2,
              "default": "0.5" },
            { "name": "mode", "type": "choice", "choices": ["fast", "slow"], "default": "fast" },
            { "name": "loop", "type": "boolean", "default": "false" },
            { "name": "title", "type": "text", "pattern": "[a-zäé ]*", "default": "" },
        ],
        "steps": [{ "argv": ["ffmpeg", "-crf", "{param.crf}", "{input.source}", "{output}"] }],
    });
    change(&mut value);
    let recipe: Recipe = serde_json::from_value(value).map_err(|error| error.to_string())?;
    recipe.validate().map_err(|error| error.to_string())?;
    Ok(recipe)
}

fn recipe() -> Recipe {
    recipe_with(|_| {}).expect("valid")
}

fn resolve(name: &str, value: &Value) -> Result<String, String> {
    let given = BTreeMap::from([(name.to_owned(), value.clone())]);
    let resolved = recipe().resolve_parameters(&given).map_err(|error| error.to_string())?;
    Ok(resolved[&name.parse().expect("a name")].clone())
}

#[test]
fn equal_values_have_one_text_however_they_are_written() {
    let same = |name: &str, texts: &[Value], canonical: &str| {
        for text in texts {
            assert_eq!(resolve(name, text).as_deref(), Ok(canonical), "{text}");
        }
    };
    same("crf", &[json!(7), json!("7"), json!("007"), json!("7.0")], "7");
    same("crf", &[json!(0), json!("-0")], "0");
    same("gain", &[json!(2.5), json!("2.50"), json!("02.5")], "2.5");
    same("gain", &[json!("-0.00"), json!(0), json!("0")], "0");
    same("gain", &[json!("-1.50"), json!(-1.5)], "-1.5");
    same("loop", &[json!(true), json!("true")], "true");
    same("title", &[json!("a é")], "a é");
}

#[test]
fn a_refusal_names_the_parameter_and_what_is_allowed() {
    let refused = |name: &str, value: Value, words: &str| {
        let error = resolve(name, &value).expect_err("not allowed");
        assert!(error.starts_with(&format!("parameters.{name}: ")), "{error}");
        assert!(error.contains(words), "{error}");
    };
    refused("crf", json!(52), "from -1 to 51");
    refused("crf", json!("1.5"), "whole number");
    refused("crf", json!("1e3"), "whole number");
    refused("crf", json!("9223372036854775808"), "whole number");
    refused("crf", json!(""), "whole number");
    refused("crf", json!([1]), "whole number");
    refused("gain", json!("0.125"), "at most 2 digits");
    refused("gain", json!("10.01"), "from -1.5 to 10");
    refused("gain", json!("1."), "a number");
    refused("mode", json!("Fast"), "one of fast, slow");
    refused("loop", json!("yes"), "true or false");
    refused("title", json!("-y"), "not beginning with '-'");
    refused("title", json!("a\nb"), "one line");
    refused("title", json!("a1"), "matching [a-zäé ]*");
    refused("title", json!(null), "one line");
}

#[test]
fn an_unknown_parameter_is_refused_with_those_there_are() {
    let error = resolve("crff", &json!(1)).expect_err("unknown");
    assert!(error.contains("crff") && error.contains("crf, gain, mode, loop, title"), "{error}");
}

#[test]
fn a_parameter_without_default_must_be_given() {
    let recipe = recipe_with(|value| {
        value["parameters"][0].as_object_mut().expect("an object").remove("default");
    });
    let error = recipe.expect("valid").resolve_parameters(&BTreeMap::new()).expect_err("missing");
    assert!(error.to_string().contains("parameters.crf") && error.allowed.contains("be given"));
}

#[test]
fn what_is_put_into_a_template_is_not_looked_at_again() {
    let template: Template = "a{param.title}{{}}{output}".parse().expect("well formed");
    let values = Values {
        parameters: BTreeMap::from([(
            "title".parse().expect("a name"),
            "{input.source} -y".to_owned(),
        )]),
        only_output: Some("x.mp4".parse().expect("a name")),
        output_folder: "out".to_owned(),
        ..Values::default()
    };
    assert_eq!(template.expand(&values).as_deref(), Ok("a{input.source} -y{}out/x.mp4"));
}

#[test]
fn a_template_that_means_nothing_is_refused() {
    for text in ["{", "}", "{input}", "{input.}", "{param.a b}", "{output.../x}", "{else.x}", "a\0"]
    {
        assert!(text.parse::<Template>().is_err(), "{text}");
    }
}

#[test]
fn a_recipe_that_cannot_be_run_is_refused_by_field() {
    type Change = fn(&mut Value);
    let bad: [(Change, &str); 14] = [
        (|v| v["steps"] = json!([]), "steps"),
        (|v| v["steps"][0]["argv"] = json!([]), "steps[0].argv"),
        (|v| v["steps"][0]["argv"][0] = json!("{param.mode}"), "steps[0].argv"),
        (|v| v["steps"][0]["argv"][1] = json!("{param.crff}"), "steps[0].argv"),
        (|v| v["steps"][0]["argv"][1] = json!("{fit.width}"), "steps[0].argv"),
        (|v| v["steps"][0]["share_percent"] = json!(50), "steps.share_percent"),
        (|v| v["parameters"][0]["default"] = json!("99"), "parameters.crf.default"),
        (|v| v["parameters"][0]["min"] = json!(52), "parameters.crf.min"),
        (|v| v["parameters"][4]["pattern"] = json!("("), "parameters.title.pattern"),
        (|v| v["parameters"][1]["name"] = json!("crf"), "parameters"),
        (|v| v["inputs"][0]["colour"] = json!("red"), "colour"),
        (|v| v["parameters"][0]["colour"] = json!("red"), "colour"),
        (|v| v["time_limit_s"] = json!(0), "time_limit_s"),
        (
            |v| v["outputs"][0]["verify"] = json!({ "input": "other", "duration": {} }),
            "outputs.video.mp4.verify.input",
        ),
    ];
    for (change, field) in bad {
        let error = recipe_with(change).expect_err(field);
        assert!(error.contains(field), "{field}: {error}");
    }
}

#[test]
fn the_canonical_definition_is_what_its_document_says() {
    let recipe = recipe_with(|value| {
        value["parameters"] = json!([]);
        value["steps"] = json!([{ "argv": ["ffmpeg"], "progress": "ffmpeg" }]);
    });
    let text = String::from_utf8(recipe.expect("valid").canonical()).expect("text");
    let expected = concat!(
        r#"{"inputs":[{"kind":"media","name":"source","needs":["video"]}],"name":"demo","#,
        r#""outputs":[{"media_type":"video/mp4","name":"video.mp4","required":true}],"#,
        r#""parameters":[],"steps":[{"argv":["ffmpeg"]}],"tool":{"name":"ffmpeg"},"version":1}"#
    );
    assert_eq!(text, expected);
}

#[test]
fn only_what_decides_the_bytes_is_part_of_the_definition() {
    let definition = |change: fn(&mut Value)| recipe_with(change).expect("valid").definition();
    let plain = definition(|_| {});
    let same: [fn(&mut Value); 5] = [
        |v| v["description"] = json!("told otherwise"),
        |v| v["parameters"][0]["description"] = json!("told otherwise"),
        |v| v["time_limit_s"] = json!(5),
        |v| v["retry"] = json!({ "failures_allowed": 9 }),
        |v| v["scratch"] = json!({ "input_percent": 1, "constant_bytes": 1 }),
    ];
    assert!(same.iter().all(|change| definition(*change) == plain));
    let other: [fn(&mut Value); 4] = [
        |v| v["name"] = json!("other"),
        |v| v["steps"][0]["argv"][1] = json!("-q"),
        |v| v["tool"]["version"] = json!("5.1"),
        |v| v["outputs"][0]["media_type"] = json!("video/webm"),
    ];
    assert!(other.iter().all(|change| definition(*change) != plain));
}

#[test]
fn a_pin_accepts_its_version_and_its_patches_alone() {
    let tool = |pin: &str| Tool { name: "ffmpeg".into(), version: Some(pin.into()) };
    assert!(tool("5.1").accepts("5.1.9-0+deb12u1") && tool("5.1").accepts("5.1"));
    assert!(!tool("5.1").accepts("5.10") && !tool("5.1").accepts("4.4"));
    assert!(Tool { name: "ffmpeg".into(), version: None }.accepts("anything"));
}

#[test]
fn a_pattern_takes_names_with_its_star_filled_within_one_folder() {
    let pattern: OutputPattern = "seg/s-*.ts".parse().expect("a pattern");
    let takes = |name: &str| pattern.matches(&name.parse().expect("a name"));
    assert!(takes("seg/s-1.ts") && takes("seg/s-00012.ts"));
    assert!(!takes("seg/s-.ts") && !takes("seg/s-a/b.ts") && !takes("s-1.ts"));
    assert!("a*b*".parse::<OutputPattern>().is_err() && "../*".parse::<OutputPattern>().is_err());
}

#[test]
fn the_room_expected_grows_with_the_inputs_and_never_overflows() {
    let scratch = Scratch { input_percent: 150, constant_bytes: 1_000 };
    assert_eq!(scratch.expected_bytes(1_001), 2_501);
    assert_eq!(scratch.expected_bytes(u64::MAX), u64::MAX);
}

#[test]
fn exit_codes_mean_what_the_recipe_says() {
    let codes = ExitCodes { retry: vec![75], give_up: vec![1], otherwise: Verdict::GiveUp };
    assert_eq!(codes.verdict(75), Verdict::Retry);
    assert_eq!((codes.verdict(1), codes.verdict(9)), (Verdict::GiveUp, Verdict::GiveUp));
    assert_eq!(ExitCodes::default().verdict(9), Verdict::Retry);
}
