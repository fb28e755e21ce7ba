//! Whatever a history holds, it is judged without a panic, and every finding is whole.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
struct Step {
    after_ms: u64,
    worker: usize,
    resource: usize,
    event: usize,
    ttl_ms: Option<u64>,
    token: Option<u64>,
}

fn step() -> impl Strategy<Value = Step> {
    let after_ms = prop_oneof![0..50_u64, 500..20_000_u64, 20_000..2_000_000_u64];
    let ttl_ms = proptest::option::of(prop_oneof![1_000..60_000_u64, Just(u64::MAX)]);
    let token = proptest::option::weighted(0.3, 1..9_u64);
    (after_ms, 0..4_usize, 0..3_usize, 0..EventKind::ALL.len(), ttl_ms, token).prop_map(
        |(after_ms, worker, resource, event, ttl_ms, token)| Step {
            after_ms,
            worker,
            resource,
            event,
            ttl_ms,
            token,
        },
    )
}

const WORKERS: [&str; 4] = ["", "a", "b", "c"];
const RESOURCES: [&str; 3] = ["", "one", "two"];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(500),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_history_is_judged_and_every_finding_is_whole(
        steps in proptest::collection::vec(step(), 1..120),
        start_ms in prop_oneof![Just(START_MS), Just(1_u64), Just(u64::MAX - 1_000_000)],
    ) {
        let mut analyser = Analyser::new(Settings::default());
        let mut at = Timestamp(start_ms);
        let texts = ["rejected", "lost", "not held", "x.mp4"];
        for (index, step) in steps.iter().enumerate() {
            at = at.plus_ms(step.after_ms);
            let kind = EventKind::ALL[step.event];
            let mut entry = Entry::new(at, WORKERS[step.worker], RESOURCES[step.resource], kind);
            entry.ttl_ms = step.ttl_ms;
            entry.duration_ms = step.ttl_ms;
            entry.token = step.token;
            entry.detail = texts.get(index % 7).copied();
            entry.source = Source { file: 0, line: index as u64 + 1 };
            analyser.push(&entry);
        }
        let findings = analyser.finish();
        for finding in &findings.findings {
            let marked = finding.story.iter().filter(|line| line.mistake).count();
            prop_assert_eq!(marked, 1, "{:#?}", finding);
            prop_assert!(!finding.evidence().is_empty(), "{:#?}", finding);
            prop_assert!(finding.story.is_sorted_by_key(|line| line.at), "{:#?}", finding);
            prop_assert!(finding.at <= finding.until, "{:#?}", finding);
            prop_assert!(!finding.headline.is_empty());
        }
        prop_assert_eq!(findings.summary.events, steps.len() as u64);
    }
}
