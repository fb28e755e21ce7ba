//! Deliberate faults in the rules. Each must be noticed by the simulator or the explorer; one that
//! nothing notices is a hole in the checkers.
//!
//! They exist here alone: the product has no switch for them. The lab's own engine, server and
//! outside world are what bends.

mod catch;
pub(crate) mod hooks;
pub(crate) mod locks;
mod projections;

#[cfg(test)]
mod tests;

pub use catch::{Caught, catch};

/// Where a sabotage is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hunt {
    /// By seeds of the simulator, with this design.
    Simulate(crate::designs::Design),
    /// By exploring this small world.
    Explore(crate::explore::World),
}

macro_rules! sabotages {
    ($($variant:ident, $name:literal, $hunt:expr, $what:literal;)*) => {
        /// One deliberate fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Sabotage {
            $(#[doc = $what] $variant,)*
        }

        impl Sabotage {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What is wrong with it.
            pub const fn what(self) -> &'static str {
                match self { $(Self::$variant => $what,)* }
            }

            /// Where it is noticed.
            pub const fn hunt(self) -> Hunt {
                use crate::{designs::Design, explore::World};
                use Hunt::{Explore, Simulate};
                match self { $(Self::$variant => $hunt,)* }
            }
        }
    };
}

sabotages! {
    FenceNotRaisedOnCancel, "fence-not-raised-on-cancel", Explore(World::Wishes),
        "a cancelled job's fence stays below its last token";
    FenceNotRaisedOnFailure, "fence-not-raised-on-failure", Explore(World::Attempts),
        "a failed attempt leaves the job's fence where it was";
    OpenAfterFailure, "open-after-failure", Explore(World::Attempts),
        "a failed attempt stays open";
    SupersededStaysOpen, "superseded-stays-open", Explore(World::Attempts),
        "a claim does not close the attempt that it replaces";
    OutrunStaysOpen, "outrun-stays-open", Simulate(Design::LyingDispatch),
        "a completion leaves the attempts beside it open, and they complete the job again";
    CompleteTwice, "complete-twice", Simulate(Design::Queue),
        "completion does not look whether the job is already complete";
    AnyRunningAttempt, "any-running-attempt", Simulate(Design::Queue),
        "a verb checks the job alone: an old attempt completes the new one";
    LeaseIdIgnored, "lease-id-ignored", Simulate(Design::Queue),
        "the token is checked, the lease id is not";
    OtherJobsPair, "other-jobs-pair", Simulate(Design::Queue),
        "a pair that was granted for another job is accepted";
    DeadlineDecides, "deadline-decides", Explore(World::Attempts),
        "an attempt that nobody replaced is refused because its deadline is past";
    RenewedWhenClosed, "renewed-when-closed", Explore(World::Attempts),
        "a heartbeat for a closed attempt is answered `held`";
    ReleasedWhilePending, "released-while-pending", Explore(World::Attempts),
        "a heartbeat releases grants whose claims are still under way";
    ClaimsForgotten, "claims-forgotten", Explore(World::Attempts),
        "a claim asked again is granted something new";
    LossesNotCounted, "losses-not-counted", Explore(World::Attempts),
        "a job that kills its workers is granted for ever";
    FailuresNotCounted, "failures-not-counted", Explore(World::Attempts),
        "a job that always fails is tried for ever";
    AnsweredBeforeCommit, "answered-before-commit", Simulate(Design::Queue),
        "the server answers, then commits";
    ReplayBeforeCommit, "replay-before-commit", Explore(World::Attempts),
        "replays and refusals are answered before the neighbour that they rest on is durable";
    CommitNotDurable, "commit-not-durable", Simulate(Design::Queue),
        "the disk says that it wrote, and did not";
    TokenReusedAfterRestart, "token-reused-after-restart", Simulate(Design::Queue),
        "the counter is kept in memory and saved now and then";
    RequestsForgotten, "requests-forgotten", Simulate(Design::Queue),
        "a submission asked again is recorded again";
    MissingBlobsAccepted, "missing-blobs-accepted", Simulate(Design::Queue),
        "a completion may name blobs that are not there";
    TwoLiveJobs, "two-live-jobs", Explore(World::Wishes),
        "a second job is made while one with the same key is live";
    RetryPastNewer, "retry-past-newer", Explore(World::Wishes),
        "a failed job is retried although a newer one has its key";
    CancelTakesAll, "cancel-takes-all", Explore(World::Wishes),
        "withdrawing one's wish cancels everybody's export";
    WithdrawnPublished, "withdrawn-published", Explore(World::Wishes),
        "a wish that was withdrawn before the commit is published all the same";
    PublishedByGrant, "published-by-grant", Explore(World::Wishes),
        "publications are fenced by the grant's number: a retry of an old export wins";
    PublicationsInMemory, "publications-in-memory", Explore(World::Wishes),
        "what is due to be published is kept in memory: a crash after the commit forgets it";
    DeliveredBeforeCommit, "delivered-before-commit", Simulate(Design::Queue),
        "the outbox delivers what is decided but not committed";
    CollectedWhilePinned, "collected-while-pinned", Explore(World::Blobs),
        "the collector condemns a blob that an upload has pinned";
    UploadNotPinned, "upload-not-pinned", Explore(World::Blobs),
        "an upload, or the word that the bytes are there, pins nothing";
    GenerationReused, "generation-reused", Explore(World::Blobs),
        "a condemned place is named again";
    CommitIgnoresBlobs, "commit-ignores-blobs", Explore(World::Blobs),
        "the commit does not look whether its blobs are present";
    NoGrace, "no-grace", Explore(World::Restarts),
        "time in which the server was down counts against the living";
    GraceForEver, "grace-for-ever", Explore(World::Restarts),
        "each start gives every lease a whole ttl: a flapping server keeps the dead for ever";
    FirstRenewalVolatile, "first-renewal-volatile", Explore(World::Restarts),
        "a lease's first renewal in a life is answered before it is durable";
    LowerTokensTaken, "lower-tokens-taken", Simulate(Design::LeaseFenced),
        "the outside does not compare tokens";
    TombstoneForgotten, "tombstone-forgotten", Explore(World::Objects),
        "deleting an object deletes its fence";
    FencedByWriterAlone, "fenced-by-writer-alone", Explore(World::Objects),
        "a put looks at the key's fence, and not whether its lease is still open";
    EqualIsLower, "equal-is-lower", Explore(World::Objects),
        "the fence refuses its own author's second write";
    LastComeFirstServed, "last-come-first-served", Explore(World::Locks),
        "of those who wait for a lock, the newest is served";
    GoneWaiterGranted, "gone-waiter-granted", Explore(World::Locks),
        "a waiter that fell silent, or whose wish has expired, is granted the lock";
    GrantOfGoneKept, "grant-of-gone-kept", Explore(World::Locks),
        "a grant whose waiter left while it was committed is kept";
    ReleasedThenGranted, "released-then-granted", Explore(World::Locks),
        "a release and the next one's grant are two transactions";
    ReleasedByAnybody, "released-by-anybody", Explore(World::Locks),
        "a late release ends somebody else's holding";
    LockForgotten, "lock-forgotten", Explore(World::Locks),
        "a lock that nobody holds is deleted, and its fence with it";
    LockFenceNotRaised, "lock-fence-not-raised", Explore(World::Locks),
        "a lock's end leaves its fence at the token that is over";
    LockRequestsForgotten, "lock-requests-forgotten", Explore(World::Locks),
        "the late duplicate of a request whose grant is over takes the lock again";
    UnknownIsFailure, "unknown-is-failure", Explore(World::Registers),
        "a swap whose answer was lost is taken for one that was not done";
    NonceDropped, "nonce-dropped", Explore(World::Registers),
        "changes of a register carry no nonce: another's change is taken for the own";
    SwappedUnconditionally, "swapped-unconditionally", Explore(World::Registers),
        "the store writes whatever the version: a paused writer overwrites";
    ExpiredTwice, "expired-twice", Explore(World::Servers),
        "a tick decides by what it read before its transaction: two servers count one loss twice";
    NumbersCached, "numbers-cached", Explore(World::Servers),
        "each server draws tokens from a block of its own";
    RenewedSuspected, "renewed-suspected", Explore(World::Servers),
        "a broken connection ends a lease that was renewed at another server since";
    BackupRaisesFence, "backup-raises-fence", Explore(World::Backups),
        "a backup attempt raises the fence past the attempt that it runs beside";
    SettledWithoutLease, "settled-without-lease", Explore(World::Delivery),
        "whoever delivered settles the row, also when another has taken it since";
    SettledBeforeSent, "settled-before-sent", Explore(World::Delivery),
        "a row is settled, and then sent";
    DeliveryLeaseForEver, "delivery-lease-for-ever", Explore(World::Delivery),
        "a row that a server took and died with is nobody else's";
    DeliveredOutOfOrder, "delivered-out-of-order", Explore(World::Delivery),
        "what is said of a job later is sent although the earlier is still under way";
    RowsApart, "rows-apart", Explore(World::Delivery),
        "a move is durable in one transaction, what it has to tell in the next";
}

impl std::str::FromStr for Sabotage {
    type Err = palisade_core::Invalid;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|sabotage| sabotage.name() == text);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|sabotage| sabotage.name()).collect();
            palisade_core::Invalid::new(
                "break",
                text,
                format!("must be one of {}", names.join(", ")),
            )
        })
    }
}

impl std::fmt::Display for Sabotage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}
