//! The table alone: random interleavings of claims, heartbeats and losses against a server that
//! keeps to its rules.

use palisade_core::keeper::KeeperConfig;
use proptest::prelude::*;

use super::*;

const TTL_MS: u64 = 6_000;

fn kept(token: u64, at: u64) -> Kept {
    let config = KeeperConfig::for_ttl(TTL_MS, 10_000);
    Kept {
        job: format!("j{token}").parse().unwrap(),
        pair: Pair { token: number(token), lease_id: palisade_core::LeaseId(u128::from(token)) },
        keeper: Keeper::granted(config, Timestamp(at), 0, Timestamp(at), 0),
        switch: Switch::new(),
    }
}

fn number(token: u64) -> Number {
    Number::new(token).unwrap()
}

fn table() -> Leases {
    Leases::new("session".parse().unwrap())
}

fn claim(id: &str) -> RequestId {
    id.parse().unwrap()
}

fn answer(beat: &Beat, status: LeaseStatus) -> HeartbeatResponse {
    let answers = beat.request.leases.iter().map(|lease| LeaseAnswer {
        job: lease.job.clone(),
        token: lease.token,
        status,
        reason: None,
        fence: None,
        completed_by: None,
    });
    HeartbeatResponse { leases: answers.collect(), released: Vec::new() }
}

fn acts(orders: &[Order]) -> Vec<&Act> {
    orders.iter().map(|order| &order.act).collect()
}

#[test]
fn nothing_held_and_nothing_to_say_sends_nothing() {
    let mut leases = table();
    assert!(leases.beat(Timestamp(0)).is_none());
    leases.begin_claim(claim("c"));
    assert!(leases.beat(Timestamp(0)).is_none());
    assert_eq!(leases.seq(), 0);
}

#[test]
fn an_abandoned_claim_is_swept_by_a_heartbeat_that_arrives_and_by_none_sent_before() {
    let mut leases = table();
    leases.begin_claim(claim("c"));
    leases.begin_claim(claim("d"));
    leases.settle_claim(&claim("d"), vec![kept(5, 0)]);
    let before = leases.beat(Timestamp(0)).unwrap();
    assert_eq!(before.request.pending, ["c"]);
    leases.abandon_claim(&claim("c"));
    leases.answered(&before, &answer(&before, LeaseStatus::Held), Timestamp(1));
    assert!(leases.must_sweep(), "that one still called it pending");
    let after = leases.beat(Timestamp(2)).unwrap();
    assert_eq!(after.request.pending, [] as [String; 0]);
    leases.answered(&after, &answer(&after, LeaseStatus::Held), Timestamp(3));
    assert!(!leases.must_sweep());
}

#[test]
fn an_answer_for_another_job_or_a_lease_that_is_gone_does_nothing() {
    let mut leases = table();
    leases.settle_claim(&claim("c"), vec![kept(5, 0)]);
    let told = |job: &str, token| Told {
        job: job.to_owned(),
        token,
        reason: AbortReason::Lost,
        detail: None,
    };
    assert!(leases.told(&told("j6", 5)).is_empty());
    assert!(leases.told(&told("j5", 6)).is_empty());
    assert!(leases.told(&told("j5", u64::MAX)).is_empty());
    let beat = leases.beat(Timestamp(0)).unwrap();
    leases.finished(number(5));
    assert!(leases.answered(&beat, &answer(&beat, LeaseStatus::Lost), Timestamp(1)).is_empty());
}

#[test]
fn a_lost_lease_is_ended_once_and_no_longer_listed() {
    let mut leases = table();
    leases.settle_claim(&claim("c"), vec![kept(5, 0), kept(6, 0)]);
    let beat = leases.beat(Timestamp(0)).unwrap();
    let mut response = answer(&beat, LeaseStatus::Held);
    response.leases[0].status = LeaseStatus::Lost;
    response.leases[0].reason = Some("superseded".to_owned());
    response.leases[0].fence = Some(9);
    let orders = leases.answered(&beat, &response, Timestamp(1));
    let detail = Some("superseded; the fence stands at 9".to_owned());
    let lost = Act::End(End::Aborted { reason: AbortReason::Lost, detail });
    assert_eq!(acts(&orders), [&lost]);
    assert!(leases.answered(&beat, &response, Timestamp(2)).is_empty());
    assert!(!leases.may_act(number(5), Timestamp(2)));
    assert_eq!(leases.beat(Timestamp(3)).unwrap().request.leases.len(), 1);
}

#[test]
fn pauses_are_sent_until_a_heartbeat_with_them_was_answered() {
    let mut leases = table();
    leases.settle_claim(&claim("c"), vec![kept(5, 0)]);
    let round = leases.tick(Timestamp(9_000), || 0);
    // First of all, before anything is told.
    assert_eq!(acts(&round.orders), [&Act::Freeze, &Act::Paused(9_000)]);
    assert!(round.renew);
    let lost = leases.beat(Timestamp(9_000)).unwrap();
    let answered = leases.beat(Timestamp(9_100)).unwrap();
    assert_eq!(lost.request.pauses, answered.request.pauses);
    assert_eq!(answered.request.pauses[0].pause_ms, 9_000);
    let orders =
        leases.answered(&answered, &answer(&answered, LeaseStatus::Held), Timestamp(9_200));
    assert_eq!(acts(&orders), [&Act::Thaw]);
    assert!(leases.beat(Timestamp(9_300)).unwrap().request.pauses.is_empty());
}

#[test]
fn a_completion_on_its_way_is_not_contradicted_by_giving_up() {
    let mut leases = table();
    leases.settle_claim(&claim("c"), vec![kept(5, 0)]);
    assert!(leases.completing(number(5), Timestamp(1)));
    leases.give_up(number(5));
    assert!(!leases.must_sweep());
    leases.settle_claim(&claim("d"), vec![kept(6, 0)]);
    leases.give_up(number(6));
    assert!(leases.must_sweep());
}

/// What may happen between a worker and its server, in any order.
#[derive(Debug, Clone)]
enum Step {
    Claim,
    /// The server grants the pending claim, and the answer arrives or is lost.
    Grant {
        arrives: bool,
    },
    /// The claim is asked again.
    AskAgain,
    Abandon,
    /// A heartbeat is sent; it arrives later or never.
    Beat,
    /// The heartbeat of that index arrives at the server.
    Arrive(usize),
    Finish,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Claim),
        any::<bool>().prop_map(|arrives| Step::Grant { arrives }),
        Just(Step::AskAgain),
        Just(Step::Abandon),
        Just(Step::Beat),
        (0_usize..6).prop_map(Step::Arrive),
        Just(Step::Finish),
    ];
    prop::collection::vec(step, 0..60)
}

/// A server as the design has it: which grants are open, and from which claim.
#[derive(Debug, Default)]
struct Server {
    open: BTreeMap<u64, (RequestId, u64)>,
    seen_seq: u64,
}

impl Server {
    /// Answers what it handed back.
    fn hear(&mut self, beat: &HeartbeatRequest) -> Vec<u64> {
        if beat.seq <= self.seen_seq {
            return Vec::new();
        }
        self.seen_seq = beat.seq;
        let listed = |token: &u64| beat.leases.iter().any(|lease| lease.token == *token);
        let pending = |claim: &RequestId| beat.pending.iter().any(|id| id == claim.as_str());
        let gone: Vec<_> = self
            .open
            .iter()
            .filter(|(token, (claim, seq))| !listed(token) && !pending(claim) && *seq < beat.seq)
            .map(|(token, _)| *token)
            .collect();
        self.open.retain(|token, _| !gone.contains(token));
        gone
    }
}

proptest! {
    #[test]
    fn the_server_never_hands_back_what_the_worker_holds_and_ends_up_holding_no_more(
        steps in steps()
    ) {
        let mut leases = table();
        let mut server = Server::default();
        let mut beats: Vec<Beat> = Vec::new();
        // The worker's claim, with the `seq` that its last try named.
        let mut pending: Option<(RequestId, u64)> = None;
        let mut next = 1_u64;
        for step in steps {
            match step {
                Step::Claim if pending.is_none() => {
                    next += 1;
                    let id = claim(&format!("c{next}"));
                    leases.begin_claim(id.clone());
                    pending = Some((id, leases.seq()));
                }
                Step::Grant { arrives } => if let Some((id, seq)) = pending.clone() {
                    let before = server.open.iter().find(|(_, (claim, _))| *claim == id);
                    let token = before.map_or_else(|| { next += 1; next }, |(token, _)| *token);
                    server.open.entry(token).or_insert((id.clone(), seq));
                    if arrives {
                        leases.settle_claim(&id, vec![kept(token, 0)]);
                        pending = None;
                    }
                },
                Step::AskAgain => if let Some((_, seq)) = &mut pending {
                    *seq = leases.seq();
                },
                Step::Abandon => if let Some((id, _)) = pending.take() {
                    leases.abandon_claim(&id);
                },
                Step::Beat => beats.extend(leases.beat(Timestamp(0))),
                Step::Arrive(index) => if let Some(beat) = beats.get(index) {
                    let beat = beat.clone();
                    for token in server.hear(&beat.request) {
                        let held = leases.find(&format!("j{token}"), token).is_some();
                        prop_assert!(!held, "{} is held", token);
                    }
                    leases.answered(&beat, &answer(&beat, LeaseStatus::Held), Timestamp(0));
                },
                Step::Finish => if let Some(token) = leases.kept.keys().next().copied() {
                    leases.give_up(token);
                },
                Step::Claim => {}
            }
        }
        // In the end whatever is abandoned is swept.
        if let Some((id, _)) = pending {
            leases.abandon_claim(&id);
        }
        if let Some(beat) = leases.beat(Timestamp(0)) {
            server.hear(&beat.request);
        }
        let held: Vec<u64> = leases.kept.keys().map(|token| token.get()).collect();
        prop_assert_eq!(server.open.keys().copied().collect::<Vec<_>>(), held);
    }
}
