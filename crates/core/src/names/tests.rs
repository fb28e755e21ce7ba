use super::*;

/// What no name may be, whatever it names.
const NEVER: [&str; 27] = [
    "",
    ".",
    "..",
    "...",
    ".hidden",
    "-rf",
    "--help",
    " ",
    "a b",
    "a\0b",
    "a\nb",
    "a\tb",
    "a\u{7f}",
    "a\u{1b}[31m",
    "a\\b",
    "a*",
    "a?",
    "a%2e",
    "a\"b",
    "a'b",
    "a;b",
    "a|b",
    "a$b",
    "é",
    "ﬁ",
    "a\u{202e}b",
    "🎬",
];

#[track_caller]
fn check_refused<N: std::str::FromStr<Err = Invalid>>(field: &str, text: &str) {
    match text.parse::<N>() {
        Ok(_) => panic!("{text:?} is no {field}"),
        Err(refused) => {
            assert_eq!(refused.field, field, "{text:?}");
            assert!(refused.to_string().contains("must be 1 to"), "{refused}");
            assert!(!refused.to_string().contains(['\0', '\n', '\u{1b}']), "shown as it is quoted");
        }
    }
}

#[test]
fn no_name_is_empty_hidden_an_option_or_holds_what_a_shell_or_a_terminal_reads() {
    for text in NEVER {
        check_refused::<Tenant>("tenant", text);
        check_refused::<WorkerName>("worker", text);
        check_refused::<RecipeName>("recipe", text);
        check_refused::<InputName>("input", text);
        check_refused::<ParameterName>("parameter", text);
        check_refused::<OutputName>("output", text);
    }
}

#[test]
fn only_outputs_have_folders() {
    assert!("a/b".parse::<OutputName>().is_ok());
    check_refused::<Tenant>("tenant", "a/b");
    check_refused::<WorkerName>("worker", "a/b");
    check_refused::<RecipeName>("recipe", "a/b");
    check_refused::<InputName>("input", "a/b");
    check_refused::<ParameterName>("parameter", "a/b");
}

#[test]
fn an_outputs_path_does_not_leave_its_folder() {
    for text in [
        "/",
        "/a",
        "a/",
        "a//b",
        "../a",
        "a/..",
        "a/../b",
        "a/../../b",
        "./a",
        "a/.",
        "a/./b",
        "a/.b",
        "//a",
        "a/b/",
    ] {
        check_refused::<OutputName>("output", text);
    }
    for text in ["video.mp4", "segments/0001.ts", "a/b/c/d", "a..b", "a/b..", "1", "a:b", "_"] {
        let name: OutputName = text.parse().unwrap();
        assert_eq!((name.as_str(), name.to_string().as_str()), (text, text));
    }
}

#[test]
fn names_have_lengths_that_fit_where_they_go() {
    let name = |length| "n".repeat(length);
    assert!(name(128).parse::<Tenant>().is_ok());
    check_refused::<Tenant>("tenant", &name(129));
    check_refused::<WorkerName>("worker", &name(100_000));
    // A path of 512 bytes, of which no part is longer than a file's name can be.
    let path = format!("{}/{}", name(255), name(254));
    assert!(format!("{path}/n").parse::<OutputName>().is_ok());
    check_refused::<OutputName>("output", &format!("{path}n/n"));
    check_refused::<OutputName>("output", &name(256));
    check_refused::<OutputName>("output", &format!("a/{}", name(256)));
}

#[test]
fn json_holds_no_bad_name_either() {
    assert!(serde_json::from_str::<OutputName>("\"../etc/passwd\"").is_err());
    assert!(serde_json::from_str::<Tenant>("\"\"").is_err());
    let name: Tenant = serde_json::from_str("\"acme\"").unwrap();
    assert_eq!(serde_json::to_string(&name).unwrap(), "\"acme\"");
}

#[test]
fn the_default_tenants_name_is_one() {
    let tenant = Tenant::default_tenant();
    assert_eq!(tenant.as_str().parse(), Ok(tenant));
}

#[test]
fn a_keys_folders_are_told_from_the_longest_on() {
    let folders = |text: &str| -> Vec<String> {
        text.parse::<ObjectKey>().unwrap().folders().map(String::from).collect()
    };
    assert_eq!(folders("a/b.c/d"), ["a/b.c", "a"]);
    assert!(folders("alone").is_empty());
}
