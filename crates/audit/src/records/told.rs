//! Notifications: each move of a job to its end has been told to everybody who asked, once, and
//! nothing else has.

use std::collections::BTreeMap;

use palisade_core::{
    JobId, Number, Tenant, Timestamp,
    history::{Event, Joined, What},
    job::{Job, JobState},
    outbox::{Delivery, Endpoint, EndpointId, EventId, EventType},
};

use super::{Checker, Rule};

/// Who was to be told of what. Empty, and costing nothing, where nobody asked.
#[derive(Debug, Default)]
pub(super) struct Told {
    endpoints: BTreeMap<EndpointId, Endpoint>,
    jobs: BTreeMap<JobId, Known>,
    rows: BTreeMap<JobId, Vec<Row>>,
    /// What the journal says was delivered or given up, with where it says so.
    settled: BTreeMap<Number, (EndpointId, u64)>,
}

/// What is known of a job.
#[derive(Debug)]
struct Known {
    tenant: Tenant,
    completed_by: Option<Number>,
    /// What its record says must have been told, and what the journal says.
    by_record: Vec<Due>,
    by_journal: Vec<Due>,
    /// Whether the journal still has its beginning.
    is_whole: bool,
    /// Its submissions as the journal has them so far, each with when it was withdrawn.
    wishes: BTreeMap<Number, Option<Timestamp>>,
}

/// Something that had to be told.
#[derive(Debug, Clone, Copy)]
struct Due {
    submission: Number,
    event: EventType,
    at: Timestamp,
    /// It may as well have been: the clock does not tell which of two things came first.
    perhaps: bool,
}

/// A row, as far as it matters here.
#[derive(Debug)]
struct Row {
    id: EventId,
    submission: Number,
    event: EventType,
    token: Option<Number>,
    seq: Number,
    at: Timestamp,
}

impl Known {
    fn of(job: &Job) -> Self {
        Self {
            tenant: job.tenant.clone(),
            completed_by: job.completed_by(),
            by_record: due_by_record(job),
            by_journal: Vec::new(),
            is_whole: false,
            wishes: BTreeMap::new(),
        }
    }

    /// Follows the job's part of the journal.
    fn follow(&mut self, at: Timestamp, what: &What) {
        match what {
            What::Submitted { submission, how } => {
                self.is_whole |= *how == Joined::New;
                self.wishes.insert(*submission, None);
                if *how == Joined::Cached {
                    let (submission, event) = (*submission, EventType::Completed);
                    self.by_journal.push(Due { submission, event, at, perhaps: false });
                }
            }
            What::Withdrawn { submission } => {
                self.wishes.insert(*submission, Some(at));
            }
            What::Moved { state, .. } => self.moved(*state, at),
            _ => {}
        }
    }

    fn moved(&mut self, state: JobState, at: Timestamp) {
        let Some(event) = event_of(state) else { return };
        for (submission, withdrawn_at) in &self.wishes {
            // A job is cancelled by the withdrawal of the last of its wishes: those that went in
            // the same instant may have gone by a change of their own.
            let cancelled = event == EventType::Cancelled;
            let concerned =
                if cancelled { *withdrawn_at == Some(at) } else { withdrawn_at.is_none() };
            if concerned {
                let (submission, perhaps) = (*submission, cancelled && self.wishes.len() > 1);
                self.by_journal.push(Due { submission, event, at, perhaps });
            }
        }
    }

    fn due(&self) -> &[Due] {
        if self.is_whole { &self.by_journal } else { &self.by_record }
    }
}

fn event_of(state: JobState) -> Option<EventType> {
    match state {
        JobState::Complete => Some(EventType::Completed),
        JobState::Failed => Some(EventType::Failed),
        JobState::Cancelled => Some(EventType::Cancelled),
        JobState::Queued | JobState::Running => None,
    }
}

/// What a job's record alone says: of its last move.
fn due_by_record(job: &Job) -> Vec<Due> {
    let Some(event) = event_of(job.state) else { return Vec::new() };
    let moved_at = job.completion.as_ref().map_or(job.moved_at, |completion| completion.at);
    let due = job.submissions.iter().filter_map(|wish| {
        let at = moved_at.max(wish.at);
        let (concerned, perhaps) = match (event, wish.withdrawn_at) {
            (EventType::Cancelled, withdrawn_at) => (withdrawn_at == Some(at), true),
            (_, None) => (true, false),
            (_, Some(withdrawn_at)) => (withdrawn_at >= at, withdrawn_at == at),
        };
        concerned.then_some(Due { submission: wish.number, event, at, perhaps })
    });
    due.collect()
}

impl Checker {
    /// Takes who wants to be told. All of them come before all jobs.
    pub fn endpoint(&mut self, endpoint: &Endpoint) {
        self.told.endpoints.insert(endpoint.id, endpoint.clone());
    }

    /// Takes a row of the outbox, in the order of their numbers, after the journal.
    pub fn delivery(&mut self, row: &Delivery) {
        let record = row.id().to_string();
        let notice = &row.notice;
        for number in [row.number, notice.seq] {
            self.check_drawn(number, &record);
        }
        if notice.seq >= row.number {
            let text = format!("its seq is {}, which was drawn after it", notice.seq);
            self.say(Rule::Outbox, record.clone(), text);
        }
        if !self.told.endpoints.contains_key(&row.endpoint) {
            let text = format!("there is no webhook {}", row.endpoint);
            self.say(Rule::Outbox, record, text);
            return;
        }
        self.told.settled.remove(&row.number);
        let (id, submission) = (row.id(), notice.submission);
        let (event, token, seq, at) = (notice.event, notice.token, notice.seq, notice.at);
        let row = Row { id, submission, event, token, seq, at };
        self.told.rows.entry(notice.job).or_default().push(row);
    }

    pub(super) fn note_who_is_told(&mut self, job: &Job) {
        if !self.told.endpoints.is_empty() {
            self.told.jobs.insert(job.id, Known::of(job));
        }
    }

    pub(super) fn note_told(&mut self, position: u64, event: &Event) {
        let Some(id) = event.job() else { return };
        if let What::NotificationDelivered(fate) | What::NotificationDead(fate) = &event.what
            && self.told.endpoints.contains_key(&fate.endpoint)
        {
            self.told.settled.insert(fate.notification, (fate.endpoint, position));
        }
        if let Some(known) = self.told.jobs.get_mut(&id) {
            known.follow(event.at, &event.what);
        }
    }

    /// Ends the looking at notifications: what had to be told, and what was.
    pub(super) fn finish_told(&mut self) {
        let mut told = std::mem::take(&mut self.told);
        for (number, (endpoint, position)) in std::mem::take(&mut told.settled) {
            let text = format!("{} was settled, and is not there", EventId { endpoint, number });
            self.say(Rule::Outbox, format!("journal {position}"), text);
        }
        for (id, known) in &told.jobs {
            let rows = told.rows.remove(id).unwrap_or_default();
            for endpoint in told.endpoints.values() {
                self.check_told_to(endpoint, (*id, known), &rows);
            }
        }
        for row in told.rows.values().flatten() {
            let text = "it tells of a job that is not there".to_owned();
            self.say(Rule::Outbox, row.id.to_string(), text);
        }
    }

    fn check_told_to(&mut self, endpoint: &Endpoint, (job, known): (JobId, &Known), rows: &[Row]) {
        let own = || rows.iter().filter(|row| row.id.endpoint == endpoint.id);
        for due in known.due().iter().filter(|due| endpoint.wants(&known.tenant, due.event)) {
            let fits = |row: &&Row| {
                (row.submission, row.event, row.at) == (due.submission, due.event, due.at)
            };
            let count = own().filter(fits).count();
            // Whoever asked in that very instant may have asked later.
            let must = !due.perhaps && endpoint.created_at < due.at;
            if count > 1 || (count == 0 && must) {
                let (submission, event, to) = (due.submission, due.event, endpoint.id);
                let text = format!("{event} for submission {submission} has {count} rows for {to}");
                self.say(Rule::Outbox, job.to_string(), text);
            }
        }
        let mut before: Option<&Row> = None;
        for row in own() {
            self.check_row(known, row);
            if let Some(before) = before.filter(|before| is_out_of_order(before, row)) {
                let text = format!("seq {} follows seq {}, of {}", row.seq, before.seq, before.id);
                self.say(Rule::Outbox, row.id.to_string(), text);
            }
            before = Some(row);
        }
    }

    /// Nothing is told that was not committed.
    fn check_row(&mut self, known: &Known, row: &Row) {
        let happened =
            |due: &Due| (due.submission, due.event, due.at) == (row.submission, row.event, row.at);
        let completed = row.event == EventType::Completed;
        let wrong = if completed && (row.token.is_none() || row.token != known.completed_by) {
            let by = known.completed_by.map_or("nobody".to_owned(), |by| format!("token {by}"));
            format!("it tells of a completion, which is {by}'s")
        } else if known.is_whole && !known.by_journal.iter().any(happened) {
            format!("it tells submission {} of {}, which never was", row.submission, row.event)
        } else {
            return;
        };
        self.say(Rule::Outbox, row.id.to_string(), wrong);
    }
}

/// What is said later has the higher seq; what is said of one move has one.
fn is_out_of_order(before: &Row, row: &Row) -> bool {
    let same_move = (before.event, before.at) == (row.event, row.at);
    row.seq < before.seq || (row.seq == before.seq && !same_move)
}
