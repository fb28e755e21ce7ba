//! A timeline as JSON, for programs that draw it themselves.

use serde_json::{Value, json};

use super::{Lane, Sign, Stretch, Timeline, WindowEnd};
use crate::words::rfc3339;

/// One object: `resource`, `from`, `until`, `lanes` (one a worker, in the order of the picture),
/// `takeovers` and `left_out`. Times are RFC 3339 in UTC.
pub fn timeline_json(timeline: &Timeline) -> Value {
    let lanes: Vec<Value> = timeline.lanes.iter().map(lane_json).collect();
    let name = |lane: usize| timeline.lanes.get(lane).map(|lane| lane.worker.as_str());
    let takeovers: Vec<Value> = timeline
        .takeovers
        .iter()
        .map(|takeover| {
            json!({
                "at": rfc3339(takeover.at),
                "from": name(takeover.from_lane),
                "to": name(takeover.to_lane),
            })
        })
        .collect();
    let Stretch { from, to } = timeline.stretch;
    json!({
        "resource": timeline.resource,
        "from": rfc3339(from),
        "until": rfc3339(to),
        "lanes": lanes,
        "takeovers": takeovers,
        "left_out": timeline.left_out,
    })
}

fn lane_json(lane: &Lane) -> Value {
    let stretches = |all: &[Stretch]| all.iter().copied().map(stretch_json).collect::<Vec<_>>();
    let windows: Vec<Value> = lane
        .windows
        .iter()
        .map(|window| {
            let mut value = stretch_json(window.stretch);
            value["last_sign"] = json!(rfc3339(window.last_sign));
            value["token"] = json!(window.token);
            value["ended"] = json!(ended(window.ended));
            value
        })
        .collect();
    let marks: Vec<Value> = lane
        .marks
        .iter()
        .map(|mark| {
            json!({
                "at": rfc3339(mark.at),
                "sign": sign(mark.sign),
                "token": mark.token,
                "kind": mark.label,
            })
        })
        .collect();
    json!({
        "worker": lane.worker,
        "leases": windows,
        "waits": stretches(&lane.waits),
        "pauses": stretches(&lane.pauses),
        "without_lease": stretches(&lane.trespasses),
        "marks": marks,
    })
}

fn stretch_json(stretch: Stretch) -> Value {
    json!({ "from": rfc3339(stretch.from), "until": rfc3339(stretch.to) })
}

const fn ended(how: WindowEnd) -> &'static str {
    match how {
        WindowEnd::GivenUp => "given_up",
        WindowEnd::RanOut => "ran_out",
        WindowEnd::Cut => "cut",
        WindowEnd::Open => "open",
    }
}

const fn sign(sign: Sign) -> &'static str {
    match sign {
        Sign::Work => "work",
        Sign::Denied => "denied",
        Sign::Renewed => "renewed",
        Sign::Released => "released",
        Sign::Completed => "completed",
        Sign::RenewFailed => "renew_failed",
        Sign::Exited => "exited",
        Sign::Expired => "expired",
        Sign::Granted => "granted",
        Sign::Landed => "effect_landed",
        Sign::Refused => "effect_refused",
        Sign::LandedLate => "effect_landed_late",
    }
}
