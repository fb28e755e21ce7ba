-- The records of a store. Every table is STRICT, and the constraints repeat the rules' invariants:
-- what a bug would write, the database refuses.
--
-- Numbers are drawn from meta.counter and stay below 2^53 (9007199254740992). Instants are ms
-- since the Unix epoch on the store's own clock.
--
-- Words are compared one by one: IN with a list builds a table of its own at each write. What
-- looks at a row's past (a fence never falls, an attempt is closed once, a complete job stays) is
-- in the condition of the statement that writes it: a trigger on every job and attempt costs a
-- tenth of all the work.

CREATE TABLE meta (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    store_id    TEXT    NOT NULL CHECK (length(store_id) = 32),
    counter     INTEGER NOT NULL CHECK (counter BETWEEN 0 AND 9007199254740991),
    clock_ms    INTEGER NOT NULL CHECK (clock_ms >= 0),
    life        INTEGER NOT NULL CHECK (life >= 0),
    -- How many jobs stand in each state, kept with every change, so that nobody has to count.
    queued      INTEGER NOT NULL CHECK (queued >= 0),
    running     INTEGER NOT NULL CHECK (running >= 0),
    complete    INTEGER NOT NULL CHECK (complete >= 0),
    failed      INTEGER NOT NULL CHECK (failed >= 0),
    cancelled   INTEGER NOT NULL CHECK (cancelled >= 0)
) STRICT;

INSERT INTO meta VALUES (1, lower(hex(randomblob(16))), 0, 0, 0, 0, 0, 0, 0, 0);

CREATE TRIGGER meta_only_rises BEFORE UPDATE ON meta
WHEN new.counter < old.counter OR new.clock_ms < old.clock_ms OR new.life < old.life
BEGIN
    SELECT RAISE(ABORT, 'the counter, the clock and the life never fall');
END;

CREATE TABLE jobs (
    id               INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 9007199254740991),
    tenant           TEXT    NOT NULL,
    job_key          BLOB    NOT NULL CHECK (length(job_key) = 32),
    recipe           TEXT    NOT NULL,
    definition       BLOB    NOT NULL CHECK (length(definition) = 32),
    -- JSON: inputs, parameters, budgets. Never changes.
    wish             TEXT    NOT NULL,
    created_at_ms    INTEGER NOT NULL,
    priority         INTEGER NOT NULL CHECK (priority BETWEEN -32768 AND 32767),
    run_at_ms        INTEGER NOT NULL,
    -- Whether a rendering is still before it. A column of its own, so that a move between
    -- `queued` and `running` leaves the index of live keys alone.
    live             INTEGER NOT NULL,
    state            TEXT    NOT NULL
        CHECK (state = 'queued' OR state = 'running' OR state = 'complete' OR state = 'failed'
            OR state = 'cancelled'),
    moved_at_ms      INTEGER NOT NULL,
    fence            INTEGER NOT NULL CHECK (fence BETWEEN 0 AND 9007199254740991),
    failures         INTEGER NOT NULL CHECK (failures >= 0),
    losses           INTEGER NOT NULL CHECK (losses >= 0),
    failed_finally   INTEGER NOT NULL CHECK (failed_finally = 0 OR failed_finally = 1),
    completed_by     INTEGER CHECK (completed_by BETWEEN 1 AND 9007199254740991),
    completed_worker TEXT,
    completed_at_ms  INTEGER,
    -- JSON.
    manifest         TEXT,
    dead_reason      TEXT,
    dead_message     TEXT,
    CHECK (live = (state = 'queued' OR state = 'running')),
    CHECK ((state = 'complete') = (completed_by IS NOT NULL)),
    CHECK ((completed_by IS NULL) = (completed_worker IS NULL)),
    CHECK ((completed_by IS NULL) = (completed_at_ms IS NULL)),
    CHECK ((completed_by IS NULL) = (manifest IS NULL)),
    CHECK ((state = 'failed') = (dead_reason IS NOT NULL)),
    CHECK ((dead_reason IS NULL) = (dead_message IS NULL))
) STRICT;

-- At most one live job of a tenant has a key.
CREATE UNIQUE INDEX jobs_live_key ON jobs (job_key, tenant) WHERE live = 1;
CREATE INDEX jobs_over_key ON jobs (job_key, tenant) WHERE live = 0;
-- What a claim walks: it is as fast with a million waiting as with one.
CREATE INDEX jobs_due ON jobs (recipe, definition, priority, run_at_ms, id)
    WHERE state = 'queued';
-- The dead letters and the cancelled are few and often asked for.
CREATE INDEX jobs_dead ON jobs (state, id) WHERE state IN ('failed', 'cancelled');

CREATE TABLE attempts (
    job               INTEGER NOT NULL,
    token             INTEGER NOT NULL CHECK (token BETWEEN 1 AND 9007199254740991),
    lease_id          BLOB    NOT NULL CHECK (length(lease_id) = 16),
    worker            TEXT    NOT NULL,
    session           TEXT    NOT NULL,
    claim             TEXT    NOT NULL,
    claim_seq         INTEGER NOT NULL,
    granted_at_ms     INTEGER NOT NULL,
    backup            INTEGER NOT NULL CHECK (backup = 0 OR backup = 1),
    ttl_ms            INTEGER NOT NULL CHECK (ttl_ms >= 0),
    -- As granted, or as first renewed in a life. Later renewals live in memory.
    deadline_ms       INTEGER NOT NULL,
    renewed_at_ms     INTEGER NOT NULL,
    life              INTEGER NOT NULL,
    closed_at_ms      INTEGER,
    close_reason      TEXT CHECK (close_reason = 'completed' OR close_reason = 'failed'
        OR close_reason = 'released' OR close_reason = 'superseded' OR close_reason = 'outrun'
        OR close_reason = 'cancelled'),
    failure_reason    TEXT,
    failure_message   TEXT,
    failure_kind      TEXT CHECK (failure_kind = 'retryable' OR failure_kind = 'final'),
    requeued_state    TEXT CHECK (requeued_state = 'queued' OR requeued_state = 'running'
        OR requeued_state = 'failed'),
    requeued_at_ms    INTEGER,
    PRIMARY KEY (job, token),
    CHECK ((closed_at_ms IS NULL) = (close_reason IS NULL)),
    CHECK ((close_reason IS 'failed') = (failure_reason IS NOT NULL)),
    CHECK ((failure_reason IS NULL) = (failure_message IS NULL)),
    CHECK ((failure_reason IS NULL) = (failure_kind IS NULL)),
    CHECK ((close_reason IS 'failed' OR close_reason IS 'released')
        = (requeued_state IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- The held leases: read at a start.
CREATE INDEX attempts_open ON attempts (job, token) WHERE closed_at_ms IS NULL;

CREATE TABLE submissions (
    job             INTEGER NOT NULL,
    number          INTEGER NOT NULL CHECK (number BETWEEN 1 AND 9007199254740991),
    at_ms           INTEGER NOT NULL,
    how             TEXT    NOT NULL
        CHECK (how = 'new' OR how = 'joined' OR how = 'cached' OR how = 'revived'),
    withdrawn_at_ms INTEGER,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

-- What each claim was granted, for the same claim asked again.
CREATE TABLE claims (
    session TEXT NOT NULL,
    claim   TEXT NOT NULL,
    -- JSON: pairs of job and token.
    grants  TEXT NOT NULL,
    PRIMARY KEY (session, claim)
) STRICT, WITHOUT ROWID;

CREATE TABLE requests (
    scope       TEXT NOT NULL,
    id          TEXT NOT NULL,
    fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
    -- JSON.
    answer      TEXT NOT NULL,
    PRIMARY KEY (scope, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
    generation INTEGER PRIMARY KEY CHECK (generation BETWEEN 1 AND 9007199254740991),
    digest     BLOB NOT NULL CHECK (length(digest) = 32),
    state      TEXT NOT NULL
        CHECK (state = 'uploading' OR state = 'present' OR state = 'condemned'),
    size_bytes INTEGER CHECK (size_bytes >= 0),
    CHECK (state <> 'present' OR size_bytes IS NOT NULL)
) STRICT;

CREATE INDEX blobs_by_digest ON blobs (digest, generation);
-- At most one generation of a digest is in use.
CREATE UNIQUE INDEX blobs_in_use ON blobs (digest) WHERE state <> 'condemned';

CREATE TRIGGER blobs_condemned_for_ever BEFORE UPDATE ON blobs
WHEN new.digest <> old.digest OR (old.state = 'condemned' AND new.state <> 'condemned')
    OR (old.state = 'present' AND new.state = 'uploading')
BEGIN
    SELECT RAISE(ABORT, 'a place is never named again once condemned');
END;

-- What keeps a blob. Ordered by generation, which rises: rows written together lie together.
CREATE TABLE keepers (
    generation INTEGER NOT NULL,
    kind       TEXT    NOT NULL
        CHECK (kind = 'output' OR kind = 'input' OR kind = 'attempt' OR kind = 'until'),
    -- A job, a token, or an instant, as the kind says.
    keeper     INTEGER NOT NULL,
    PRIMARY KEY (generation, kind, keeper)
) STRICT, WITHOUT ROWID;

-- The keepers that end; outputs and inputs stay with their job.
CREATE INDEX keepers_passing ON keepers (kind, keeper) WHERE kind IN ('attempt', 'until');

-- The journal, packed: one row holds up to a hundred entries of one transaction.
CREATE TABLE journal (
    -- The position of the row's first entry; the journal's first position is 1.
    first  INTEGER PRIMARY KEY CHECK (first > 0),
    -- How many entries the row holds.
    count  INTEGER NOT NULL CHECK (count > 0),
    -- JSON: an array of entries.
    events TEXT    NOT NULL
) STRICT;

-- Which rows of the journal tell of a job.
CREATE TABLE journal_jobs (
    job   INTEGER NOT NULL,
    first INTEGER NOT NULL,
    PRIMARY KEY (job, first)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER journal_never_changes BEFORE UPDATE ON journal
BEGIN
    SELECT RAISE(ABORT, 'the journal is append-only');
END;
