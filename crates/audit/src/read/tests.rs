mod profiles;

use proptest::prelude::*;

use super::*;

/// Reads a whole log in pieces of `piece` bytes.
fn read_in_pieces(translation: &Translation, text: &str, piece: usize) -> (Vec<String>, Tally) {
    let mut entries = Vec::new();
    let mut sink = |entry: &Entry<'_>| {
        let mut line =
            format!("{} {} {} {}", entry.at.0, entry.worker, entry.resource, entry.event.word());
        for (name, value) in [("ttl", entry.ttl_ms), ("token", entry.token)] {
            if let Some(value) = value {
                line.push_str(&format!(" {name}={value}"));
            }
        }
        for (name, value) in [("kind", entry.kind), ("detail", entry.detail)] {
            if let Some(value) = value {
                line.push_str(&format!(" {name}={value}"));
            }
        }
        entries.push(line);
    };
    let mut reader = Reader::new(translation, 0, "node-1.log");
    for part in text.as_bytes().chunks(piece) {
        reader.feed(part, &mut sink);
    }
    let tally = reader.finish(&mut sink);
    (entries, tally)
}

fn read(translation: &Translation, text: &str) -> (Vec<String>, Tally) {
    let whole = read_in_pieces(translation, text, usize::MAX);
    let bytewise = read_in_pieces(translation, text, 7);
    assert_eq!(whole.0, bytewise.0, "pieces must not matter");
    assert_eq!(whole.1.unreadable, bytewise.1.unreadable);
    whole
}

#[test]
fn json_lines_are_read_flat_escaped_and_nested() {
    let mut translation = Translation::new();
    translation.map("worker=host.name").unwrap();
    let log = r#"{"at": "2026-03-14T09:00:00.000Z", "host": {"name": "w1"}, "resource": "a", "event": "acquired", "ttl_ms": 30000, "token": 7}
{"at":1773478800.5,"host.name":"w\"1\"","resource":"a","event":"renewed","ttl_ms":null,"more":{"x":[1,"}"]}}
"#;
    let (entries, tally) = read(&translation, log);
    assert_eq!(
        entries,
        ["1773478800000 w1 a acquired ttl=30000 token=7", "1773478800500 w\"1\" a renewed"]
    );
    assert_eq!(tally.unreadable_lines, 0);
}

#[test]
fn the_fast_road_and_the_slow_road_through_json_agree() {
    let translation = Translation::new();
    let mut nested = Translation::new();
    nested.map("outcome=never.there").unwrap();
    let lines = [
        r#"{"at": "2026-03-14T09:00:00Z", "worker": "w", "resource": "r", "event": "progress"}"#,
        r#" { "at" : 1773478800000 , "worker":"w","resource":"r","event":"effect","kind":"write"} "#,
        r#"{"at": 1773478800, "worker": "ü", "resource": "r", "event": "started", "ok": true, "n": -1.5e3}"#,
        r#"{"at": 1773478800, "worker": null, "resource": "r", "event": "expired"}"#,
        r#"{"at": 1773478800, "worker": "w", "resource": "r", "event": "acquired",}"#,
        r#"{"at": 1773478800, "worker": "w", "resource": "r", "event": "acquired"} x"#,
        r#"{"at": 1773478800, "worker": "w" "resource": "r"}"#,
        r#"{"at": 1773478800, "worker": w, "resource": "r", "event": "acquired"}"#,
        "{}",
        "{\"at\": 17734",
    ];
    for line in lines {
        let fast = read(&translation, line);
        let slow = read(&nested, line);
        assert_eq!(fast.0, slow.0, "{line}");
        assert_eq!(fast.1.unreadable_lines, slow.1.unreadable_lines, "{line}");
    }
}

#[test]
fn csv_is_read_with_quotes_and_other_separators() {
    let translation = Translation::new();
    let log = "at;worker;resource;event;detail\n\
               1773478800000;\"w;1\";r;effect;\"said \"\"no\"\"\"\n\
               1773478801000;w2;r;progress;\n\
               1773478802000;w2;r\n\
               1773478803000;w2;r;progress;a;b;c\n\
               1773478804000;\"w2;r;progress;\n";
    let (entries, tally) = read(&translation, log);
    assert_eq!(
        entries,
        ["1773478800000 w;1 r effect detail=said \"no\"", "1773478801000 w2 r progress"]
    );
    assert_eq!(tally.unreadable_lines, 3);
    assert_eq!(tally.unreadable[0].source.line, 4);
}

#[test]
fn a_csv_header_may_be_quoted_and_its_names_may_hold_separators() {
    let mut translation = Translation::new();
    translation.map("worker=who; \"what\"").unwrap();
    translation.map("ttl_s=expires").unwrap();
    let log = "\u{feff}\"time\";\"who; \"\"what\"\"\";\"resource\";\"event\";\"expires\"\r\n\
               1773478800;\"a;b\";r;acquired;30\r\n1773478801;a;r;renewed;1500ms\r\n\
               1773478802;a;r;renewed;0.5\r\n";
    let (entries, tally) = read(&translation, log);
    let expected = [
        "1773478800000 a;b r acquired ttl=30000",
        "1773478801000 a r renewed ttl=1500",
        "1773478802000 a r renewed ttl=500",
    ];
    assert_eq!(entries, expected);
    assert_eq!(tally.unreadable_lines, 0, "{:?}", tally.unreadable);
}

#[test]
fn logfmt_is_read_with_quotes_and_escapes() {
    let mut translation = Translation::new();
    translation.word("lock ok=acquired").unwrap();
    let log = "ts=2026-03-14T09:00:00Z level=info worker=w1 resource=r event=\"lock ok\" ttl_ms=30s\n\
               ts=2026-03-14T09:00:01Z worker=w1 resource=r event=renew_failed detail=\"he said \\\"no\\\"\"\n\
               panic: nothing of ours\n\
               ts=2026-03-14T09:00:02Z worker=w1 resource=r event=\"open\n";
    let (entries, tally) = read(&translation, log);
    assert_eq!(
        entries,
        [
            "1773478800000 w1 r acquired ttl=30000",
            "1773478801000 w1 r renew_failed detail=he said \"no\""
        ]
    );
    assert_eq!(tally.unreadable_lines, 2);
}

#[test]
fn plain_lines_are_taken_apart_by_a_pattern() {
    let mut translation = Translation::new();
    translation
        .pattern(r"^(?P<at>\S+ \S+) \[(?P<worker>\S+)\] (?P<event>\w+) lock (?P<resource>\S+)(?: for (?P<ttl_ms>\S+))?")
        .unwrap();
    translation.word("took=acquired").unwrap();
    let log = "2026-03-14 09:00:00,250 [node-7] took lock export:1 for 30s\nsomething else\n\n";
    let (entries, tally) = read(&translation, log);
    assert_eq!(entries, ["1773478800250 node-7 export:1 acquired ttl=30000"]);
    assert_eq!((tally.lines, tally.unreadable_lines), (3, 1));
}

#[test]
fn an_unknown_word_is_named_and_a_missing_field_too() {
    let translation = Translation::new();
    let log = "{\"at\":1773478800,\"worker\":\"w\",\"resource\":\"r\",\"event\":\"heartbeat\"}\n\
               {\"at\":1773478800,\"worker\":\"w\",\"event\":\"acquired\"}\n\
               {\"at\":\"noon\",\"worker\":\"w\",\"resource\":\"r\",\"event\":\"acquired\"}\n\
               {\"at\":1773478800,\"worker\":\"w\",\"event\":\"exited\"}\n";
    let (entries, tally) = read(&translation, log);
    assert_eq!(entries, ["1773478800000 w  exited"]);
    assert_eq!(tally.unknown_words, [("heartbeat".to_owned(), 1)]);
    let whys: Vec<&str> = tally.unreadable.iter().map(|line| line.why.as_str()).collect();
    assert_eq!(whys[0], "no field `resource`");
    assert!(whys[1].starts_with("at: \"noon\" is not a time"), "{whys:?}");
}

#[test]
fn lines_that_are_no_text_or_far_too_long_are_counted_and_passed_over() {
    let translation = Translation::new();
    let good = "{\"at\":1773478800,\"worker\":\"w\",\"resource\":\"r\",\"event\":\"progress\"}\n";
    let mut bytes = b"{\"at\": \xff\xfe}\n".to_vec();
    bytes.extend_from_slice(&vec![b'x'; LINE_BYTES_MAX * 2]);
    bytes.push(b'\n');
    bytes.extend_from_slice(good.as_bytes());
    let mut count = 0;
    let mut reader = Reader::new(&translation, 0, "x.jsonl");
    for part in bytes.chunks(1_000) {
        reader.feed(part, &mut |_| count += 1);
    }
    let tally = reader.finish(&mut |_| ());
    assert_eq!((count, tally.unreadable_lines), (1, 2));
}

#[test]
fn an_effect_that_was_refused_is_known_by_its_outcome() {
    let translation = Translation::new();
    for said in
        ["\"outcome\":\"412\"", "\"detail\":\"rejected: stale_token\"", "\"kind\":\"refused\""]
    {
        let log =
            format!("{{\"at\":1,\"worker\":\"w\",\"resource\":\"r\",\"event\":\"effect\",{said}}}");
        let (entries, _) = read(&translation, &log);
        assert!(entries[0].contains(" refused"), "{said}: {entries:?}");
    }
}

#[test]
fn times_are_read_in_every_form_that_is_promised() {
    let cases = [
        ("2026-03-14T09:00:00Z", 1_773_478_800_000),
        ("2026-03-14T10:30:00.123456+01:30", 1_773_478_800_123),
        ("2026-03-14T04:00:00.5-05:00", 1_773_478_800_500),
        ("2026-03-14 09:00:00,250", 1_773_478_800_250),
        ("2026-03-14 09:00:00 +0000", 1_773_478_800_000),
        ("1773478800", 1_773_478_800_000),
        ("1773478800.25", 1_773_478_800_250),
        ("1773478800250", 1_773_478_800_250),
        ("1773478800250000", 1_773_478_800_250),
        ("0314 09:00:00.250000", 1_773_478_800_250),
    ];
    for (text, ms) in cases {
        assert_eq!(parse_time(text, 2026).map(|at| at.0), Some(ms), "{text}");
        assert_eq!(time::DayCache::default().parse(text, 2026).map(|at| at.0), Some(ms), "{text}");
    }
    for text in
        ["", "noon", "2026-13-01T00:00:00Z", "2026-03-14T25:00:00Z", "2026-03-14T09:00:00X", "-5"]
    {
        assert_eq!(parse_time(text, 2026), None, "{text}");
    }
}

#[test]
fn what_cannot_be_translated_is_refused_with_the_field_and_what_is_allowed() {
    let mut translation = Translation::new();
    let message = translation.map("when=ts").unwrap_err().to_string();
    assert!(message.contains("\"when\"") && message.contains("at, worker"), "{message}");
    let message = translation.word("x=granted").unwrap_err().to_string();
    assert!(message.contains("\"granted\"") && message.contains("acquired"), "{message}");
    assert!(translation.map("at").is_err());
    assert!(translation.pattern("(").is_err());
    assert!(translation.pattern(r"(?P<at>\S+)").is_err());
    assert!(Profile::parse("about = 'x'\nsurprise = 1").is_err());
}

proptest! {
    #[test]
    fn no_bytes_bring_a_reader_down(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        text in "[ -~ü\n\"\\\\{}=,;:.]{0,300}",
        format in 0..4_usize,
    ) {
        let mut translation = Translation::new();
        match format {
            0 => translation.set_format(Format::Json),
            1 => translation.set_format(Format::Csv),
            2 => translation.set_format(Format::Logfmt),
            _ => translation.pattern(r"(?P<at>\S+) (?P<event>\S+) (?P<worker>\S+)").unwrap(),
        }
        for log in [&bytes[..], text.as_bytes(), b"at,worker,resource,event\n", &bytes[..]] {
            let mut reader = Reader::new(&translation, 0, "x");
            reader.feed(b"at,worker,resource,event\n", &mut |_| ());
            reader.feed(log, &mut |_| ());
            let tally = reader.finish(&mut |_| ());
            prop_assert!(tally.entries + tally.unreadable_lines <= tally.lines);
        }
        for time in text.split([',', ' ']) {
            let _ = (parse_time(time, 2026), parse_span_ms(time));
        }
    }
}

const CSV: &str = "at,worker,resource,event,detail\n";

#[test]
fn a_csv_cell_may_have_line_breaks_and_its_record_stands_where_it_began() {
    let log = format!(
        "{CSV}1000,w,r,effect,\"one\n\n\"\"two\"\", three\"\n1001,w,r,progress,\n1002,w,r,x,\n"
    );
    let (entries, tally) = read(&Translation::new(), &log);
    let first = "1000000 w r effect detail=one\n\n\"two\", three";
    assert_eq!(entries, [first, "1001000 w r progress"]);
    assert_eq!((tally.lines, tally.unreadable_lines), (6, 0));
    assert_eq!(tally.unknown_words, [("x".to_owned(), 1)]);
}

#[test]
fn a_quote_that_is_never_closed_costs_one_line() {
    let rest = "1001,w,r,progress,\n1002,w,r,progress,\"fine\"\n1003,w,r,completed,\n";
    for log in [
        format!("{CSV}1000,w,r,effect,\"broken\n{rest}"),
        format!("{CSV}1000,w,r,effect,\"broken\n{}", rest.replace("\"fine\"", "")),
        format!("{CSV}1000,w,r,effect,\"broken\n{}", rest.repeat(100)),
    ] {
        let (entries, tally) = read(&Translation::new(), &log);
        assert_eq!(tally.unreadable_lines, 1, "{:?}", tally.unreadable);
        assert_eq!(tally.unreadable[0].source.line, 2);
        assert_eq!(entries.len() as u64, tally.lines - 2, "{entries:?}");
    }
}

#[test]
fn words_in_capitals_lists_of_objects_and_commas_at_the_end_are_understood() {
    let log = "[\n{\"at\":1000,\"worker\":\"w\",\"resource\":\"r\",\"event\":\"Renew-Failed\"},\n\
               {\"at\":1001,\"worker\":\"w\",\"resource\":\"r\",\"event\":\"ACQUIRED\"}\n]\n";
    let (entries, tally) = read(&Translation::new(), log);
    assert_eq!(entries, ["1000000 w r renew_failed", "1001000 w r acquired"]);
    assert_eq!(tally.unreadable_lines, 0);
    let log = format!("{CSV}1000,w,r,effect,x,,\n1001,w,r,effect,x,,y\n");
    let (entries, tally) = read(&Translation::new(), &log);
    assert_eq!(entries, ["1000000 w r effect detail=x"]);
    assert_eq!(tally.unreadable_lines, 1, "a value that no column names");
}
