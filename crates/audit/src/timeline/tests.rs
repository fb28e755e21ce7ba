use palisade_core::Timestamp;

use super::*;
use crate::findings::{Analyser, Findings, Settings};
use crate::{Entry, EventKind};

/// `SECONDS WORKER EVENT [ttl=… token=… kind=…]` lines of one resource.
fn picture(history: &str) -> (Timeline, Findings) {
    let mut analyser = Analyser::new(Settings::default());
    let mut collector = Collector::new(["job"].into_iter(), Vec::new());
    for line in history.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let seconds: u64 = words.next().unwrap().parse().unwrap();
        let worker = words.next().unwrap();
        let event = EventKind::from_word(words.next().unwrap()).unwrap();
        let at = Timestamp(1_773_478_800_000 + seconds * 1_000);
        let mut entry = Entry::new(at, worker, "job", event);
        for word in words {
            match word.split_once('=').unwrap() {
                ("ttl", value) => entry.ttl_ms = Some(value.parse::<u64>().unwrap() * 1_000),
                ("token", value) => entry.token = Some(value.parse().unwrap()),
                ("kind", value) => entry.kind = Some(value),
                other => panic!("{other:?}"),
            }
        }
        analyser.push(&entry);
        collector.push(&entry);
    }
    let findings = analyser.finish();
    let timeline = collector.finish(&findings.findings).pop().unwrap();
    (timeline, findings)
}

const SEED_STORY: &str = "
    0 a acquired ttl=30 token=33
    10 a renewed ttl=30
    41 b acquired ttl=30 token=34
    51 b renewed ttl=30
    60 a progress
    65 a refused kind=write token=33
    66 a effect kind=notify token=33
    70 b renewed ttl=30
    75 b effect kind=write token=34
    76 b completed
    77 b released";

const PLAIN: Style = Style { width: 80, colour: false };

#[test]
fn the_lanes_hold_leases_pauses_trespasses_and_takeovers() {
    let (timeline, _) = picture(SEED_STORY);
    assert_eq!(timeline.lanes.len(), 2);
    let seconds = |stretch: Stretch| {
        let base = 1_773_478_800_000;
        ((stretch.from.0 - base) / 1_000, (stretch.to.0 - base) / 1_000)
    };
    let (a, b) = (&timeline.lanes[0], &timeline.lanes[1]);
    assert_eq!(seconds(a.windows[0].stretch), (0, 40));
    assert_eq!(a.windows[0].ended, WindowEnd::RanOut);
    assert_eq!(a.pauses.iter().copied().map(seconds).collect::<Vec<_>>(), [(10, 60)]);
    assert_eq!(a.trespasses.iter().copied().map(seconds).collect::<Vec<_>>(), [(60, 66)]);
    assert_eq!(seconds(b.windows[0].stretch), (41, 77));
    assert_eq!(b.windows[0].ended, WindowEnd::GivenUp);
    assert_eq!(timeline.takeovers.len(), 1);
    assert_eq!((timeline.takeovers[0].from_lane, timeline.takeovers[0].to_lane), (0, 1));
    let signs: Vec<Sign> = a.marks.iter().map(|mark| mark.sign).collect();
    assert!(signs.contains(&Sign::Refused) && signs.contains(&Sign::LandedLate), "{signs:?}");
}

#[test]
fn the_text_shows_every_sign_without_colour_and_fits_the_width() {
    let (timeline, _) = picture(SEED_STORY);
    for width in [60, 80, 120, 200] {
        let text = draw_text(&timeline, Style { width, colour: false });
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line:?}");
        }
        for sign in ['┣', '·', '╳', '┿', '⊘', '▲', '#', '~'] {
            assert!(text.contains(sign), "no {sign} at {width}:\n{text}");
        }
        assert!(!text.contains('\u{1b}'));
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    let (timeline, _) = picture(SEED_STORY);
    let coloured = draw_text(&timeline, Style { colour: true, ..PLAIN });
    assert!(coloured.contains("\u{1b}["));
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&plain), trimmed(&draw_text(&timeline, PLAIN)));
}

#[test]
fn twenty_workers_with_long_names_stay_apart() {
    let mut history = String::new();
    for number in 0..20 {
        let name = format!("render-{number:02}.eu-west-1.compute.internal");
        history.push_str(&format!("{} {name} acquired ttl=30 token={}\n", number * 40, number + 1));
    }
    let (timeline, _) = picture(&history);
    let text = draw_text(&timeline, PLAIN);
    for number in 0..20 {
        assert!(text.contains(&format!("render-{number:02}…")), "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_svg_is_well_formed_and_escapes_what_the_log_says() {
    let history = SEED_STORY.replace(" a ", " <a&\"b\"> ").replace("kind=write", "kind=</svg>");
    let (timeline, _) = picture(&history);
    let svg = draw_svg(&timeline, 900);
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert_eq!(svg.matches("</svg>").count(), 1);
    assert!(svg.contains("&lt;a&amp;&quot;b&quot;&gt;"));
    let opened = svg.matches("<g>").count();
    assert_eq!(opened, svg.matches("</g>").count());
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    let (a, b) = (svg.matches("refused").count(), svg.matches("landed too late").count());
    assert!(a >= 2 && b >= 2, "{svg}");
}

#[test]
fn a_holder_that_is_not_heard_of_again_is_drawn_as_silent() {
    let (timeline, _) = picture("0 a acquired\n5 a progress\n300 b denied\n600 b denied");
    let text = draw_text(&timeline, PLAIN);
    assert!(text.contains('┄') && text.contains('o'), "{text}");
    assert_eq!(timeline.lanes[0].windows[0].ended, WindowEnd::Open);
}

#[test]
fn ticks_are_at_round_instants_and_few() {
    for length_ms in [1, 900, 40_000, 3_600_000, 90 * 86_400_000] {
        let stretch = Stretch {
            from: Timestamp(1_773_478_800_123),
            to: Timestamp(1_773_478_800_123 + length_ms),
        };
        let ticks = axis::ticks(stretch, 8);
        assert!(ticks.len() <= 9, "{length_ms}: {}", ticks.len());
    }
}

#[test]
fn an_effect_after_the_next_holder_is_through_is_drawn_as_late() {
    let (timeline, _) = picture(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         41 b acquired ttl=30
         50 b effect
         51 b completed
         52 b released
         60 a effect",
    );
    let signs: Vec<Sign> = timeline.lanes[0].marks.iter().map(|mark| mark.sign).collect();
    assert!(signs.contains(&Sign::LandedLate), "{signs:?}");
}

#[test]
fn programs_get_what_the_picture_shows() {
    let (timeline, _) = picture(SEED_STORY);
    let told = timeline_json(&timeline);
    let (a, b) = (&told["lanes"][0], &told["lanes"][1]);
    assert_eq!((&a["worker"], &b["worker"]), (&"a".into(), &"b".into()));
    let at = |second: u64| crate::words::rfc3339(Timestamp(1_773_478_800_000 + second * 1_000));
    assert_eq!((&told["from"], &told["until"]), (&at(0).into(), &at(77).into()));
    let lease = serde_json::json!(
        { "from": at(0), "until": at(40), "last_sign": at(40), "token": 33, "ended": "ran_out" }
    );
    assert_eq!(a["leases"], serde_json::json!([lease]));
    assert_eq!(a["pauses"], serde_json::json!([{ "from": at(10), "until": at(60) }]));
    assert_eq!(a["without_lease"], serde_json::json!([{ "from": at(60), "until": at(66) }]));
    let takeover = serde_json::json!({ "at": at(41), "from": "a", "to": "b" });
    assert_eq!(told["takeovers"], serde_json::json!([takeover]));
    let refused =
        serde_json::json!({ "at": at(65), "sign": "effect_refused", "token": 33, "kind": "write" });
    assert!(a["marks"].as_array().unwrap().contains(&refused), "{a:#}");
}

#[test]
fn a_request_and_its_answer_are_drawn_as_a_wait() {
    let (timeline, _) = picture(
        "0 a acquired ttl=30
         2 b requested
         9 a released
         9 b acquired ttl=30
         10 c requested
         14 c denied
         15 d requested
         20 b released",
    );
    let waited = |lane: usize| {
        let base = 1_773_478_800_000;
        let seconds = |at: Timestamp| (at.0 - base) / 1_000;
        let waits = timeline.lanes[lane].waits.iter();
        waits.map(|wait| (seconds(wait.from), seconds(wait.to))).collect::<Vec<_>>()
    };
    assert_eq!((waited(0), waited(1)), (vec![], vec![(2, 9)]));
    assert_eq!((waited(2), waited(3)), (vec![(10, 14)], vec![]), "d has no answer");
    for text in [draw_text(&timeline, PLAIN), draw_svg(&timeline, 900)] {
        assert!(text.contains('╌') || text.contains("<title>waiting"), "{text}");
    }
}
