mod deliveries;
mod notices;
mod random;

use crate::{JobId, LeaseId, Number, Timestamp};

use super::*;

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn number(value: u64) -> Number {
    Number::new(value).unwrap()
}

fn lease_id(value: u128) -> LeaseId {
    LeaseId(value)
}

fn row() -> Delivery {
    let notice = Notice {
        event: EventType::Completed,
        job: JobId(number(1)),
        submission: number(1),
        token: Some(number(2)),
        seq: number(3),
        at: NOW,
        body: "{}".to_owned(),
    };
    Delivery::new(number(4), EndpointId(5), notice, NOW)
}

fn leased(row: Delivery, id: u128, now: Timestamp) -> Delivery {
    match lease(row, lease_id(id), 20_000, now) {
        Leasing::Leased(row) => row,
        Leasing::Dead(..) => panic!("it has tries left"),
    }
}

fn failed() -> Tried {
    let error = "503 Service Unavailable".to_owned();
    Tried::Failed { status: Some(503), error, retry_after_ms: None, gone: false }
}
