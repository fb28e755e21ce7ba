//! How far whole numbers from outside may reach: below 2^53, so that every engine and every JSON
//! reader keeps them exact.

use palisade_core::{Invalid, Number, Refusal, Timestamp};

use crate::command::{Command, Pin, Submit};

/// Refuses a command that carries a number too large, naming the field.
pub(super) fn check(command: &Command) -> Result<(), Refusal> {
    match command {
        Command::Submit(submit) => wish(submit),
        Command::Claim(claim) => {
            number("seq", claim.seq)?;
            number("ttl_ms", claim.ttl_ms)
        }
        Command::Heartbeat(beat) => number("seq", beat.seq),
        Command::BeginBlob(begin) => match begin.pin {
            Pin::Until(Timestamp(until)) => number("pin.until_ms", until),
            Pin::Attempt(..) => Ok(()),
        },
        Command::FinishBlob(finish) => number("size_bytes", finish.size_bytes),
        Command::AcquireLock(asked) => {
            number("ttl_ms", asked.wish.ttl_ms)?;
            number("wait_ms", asked.wish.wait_ms)
        }
        Command::Collect(asked) => number("grace_ms", asked.grace_ms),
        Command::ForgetBlobs(asked) => number("tombstone_ms", asked.tombstone_ms),
        Command::ReleaseJobs(asked) => number("keep_ms", asked.keep_ms),
        Command::PutObject(put) => number("op", put.op),
        Command::DeleteObject(delete) => number("op", delete.op),
        Command::RotateSecret(asked) => number("keep_ms", asked.keep_ms),
        Command::LeaseDeliveries(asked) => number("ttl_ms", asked.ttl_ms),
        Command::Complete(_)
        | Command::Fail(_)
        | Command::Release(_)
        | Command::HandBack(_)
        | Command::Cancel(_)
        | Command::Retry(_)
        | Command::Suspect(_)
        | Command::RenewLock(_)
        | Command::ReleaseLock(_)
        | Command::LeaveLock(_)
        | Command::RaiseObject(_)
        | Command::MarkCleared(_)
        | Command::CreateEndpoint(_)
        | Command::DeleteEndpoint(_)
        | Command::SettleDelivery(_)
        | Command::Redeliver(_)
        | Command::TellProgress(_)
        | Command::Forget(_)
        | Command::Publish(_)
        | Command::Tick => Ok(()),
    }
}

fn wish(Submit { wish, .. }: &Submit) -> Result<(), Refusal> {
    number("run_at_ms", wish.run_at.0)?;
    number("retry.backoff_ms", wish.retry.backoff_ms)?;
    number("retry.backoff_ms_max", wish.retry.backoff_ms_max)?;
    number("backup_after_ms", wish.backup_after_ms.unwrap_or(0))
}

fn number(field: &str, value: u64) -> Result<(), Refusal> {
    if value <= Number::MAX.get() {
        return Ok(());
    }
    let allowed = "must be a whole number below 2^53";
    Err(Refusal::Invalid(Invalid::new(field, &value.to_string(), allowed)))
}
