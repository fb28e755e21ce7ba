-- The records of a store that many servers share. What a bug would write, the constraints refuse.
--
-- Numbers are drawn from the sequence `counter` and stay below 2^53. Instants are ms since the Unix
-- epoch on the store's own clock. Names compare byte by byte (COLLATE "C"), whatever the
-- database's language.
--
-- Three kinds of tables. Logged: what was answered as done. UNLOGGED: what a store on one machine
-- keeps in memory (renewals, those who wait, heartbeats seen): written without the log, shared by
-- all servers, empty after a crash, and then made anew from the logged ones. Derived columns of
-- `jobs`: what is searched for; the record beside them is what counts.

CREATE SEQUENCE counter AS bigint MAXVALUE 9007199254740991 CACHE 1 NO CYCLE;

CREATE TABLE meta (
    one        integer PRIMARY KEY CHECK (one = 1),
    store_id   text    NOT NULL,
    -- The cluster that wrote here last: another one is a fail-over or a restored copy.
    system_id  text,
    timeline   text,
    -- When that cluster's server process started: another instant is a restart.
    started    text
);
INSERT INTO meta VALUES (1, md5(random()::text || clock_timestamp()::text), NULL, NULL, NULL);

-- The clock: wall time as the database has it, plus `ahead_ms`. Recorded every second by whoever
-- serves; it never falls.
CREATE TABLE clock (
    one      integer PRIMARY KEY CHECK (one = 1),
    clock_ms bigint  NOT NULL CHECK (clock_ms >= 0),
    ahead_ms bigint  NOT NULL,
    life     bigint  NOT NULL CHECK (life >= 0)
) WITH (fillfactor = 10);
INSERT INTO clock VALUES (1, 0, 0, 0);

-- The journal's last position, and how many jobs stand in each state. Every transaction that
-- writes changes this row, last of all.
CREATE TABLE head (
    one       integer PRIMARY KEY CHECK (one = 1),
    position  bigint  NOT NULL CHECK (position >= 0),
    queued    bigint  NOT NULL CHECK (queued >= 0),
    running   bigint  NOT NULL CHECK (running >= 0),
    complete  bigint  NOT NULL CHECK (complete >= 0),
    failed    bigint  NOT NULL CHECK (failed >= 0),
    cancelled bigint  NOT NULL CHECK (cancelled >= 0)
) WITH (fillfactor = 10);
INSERT INTO head VALUES (1, 0, 0, 0, 0, 0, 0);

-- Refuses a transaction whose rows are not as it read them.
CREATE FUNCTION palisade_expect(counted bigint, wanted bigint, what text) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    IF counted <> wanted THEN
        RAISE EXCEPTION '% of % rows of % are as they were read', counted, wanted, what
            USING ERRCODE = '40001';
    END IF;
    RETURN counted;
END $$;

CREATE FUNCTION palisade_only_rises() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'a fence outlives what it guards';
    END IF;
    IF new.fence < old.fence THEN
        RAISE EXCEPTION 'a fence never falls';
    END IF;
    RETURN new;
END $$;

CREATE TABLE jobs (
    id           bigint   PRIMARY KEY CHECK (id BETWEEN 1 AND 9007199254740991),
    tenant       text     COLLATE "C" NOT NULL,
    job_key      bytea    NOT NULL CHECK (length(job_key) = 32),
    recipe       text     COLLATE "C" NOT NULL,
    definition   bytea    NOT NULL CHECK (length(definition) = 32),
    priority     smallint NOT NULL,
    run_at_ms    bigint   NOT NULL,
    state        text     NOT NULL
        CHECK (state IN ('queued', 'running', 'complete', 'failed', 'cancelled')),
    live         boolean  NOT NULL,
    fence        bigint   NOT NULL CHECK (fence BETWEEN 0 AND 9007199254740991),
    completed_by bigint   CHECK (completed_by BETWEEN 1 AND 9007199254740991),
    -- Rises with each change: compared before it is written.
    version      bigint   NOT NULL,
    -- JSON: the whole job, with its attempts and submissions.
    record       text     NOT NULL,
    CHECK (live = (state IN ('queued', 'running'))),
    CHECK ((state = 'complete') = (completed_by IS NOT NULL))
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05);

-- At most one live job of a tenant has a key.
CREATE UNIQUE INDEX jobs_live_key ON jobs (job_key, tenant) WHERE live;
CREATE INDEX jobs_over_key ON jobs (job_key, tenant, id) WHERE NOT live;
-- What a claim walks: it is as fast with a million waiting as with one.
CREATE INDEX jobs_due ON jobs (recipe, definition, priority, run_at_ms, id)
    WHERE state = 'queued';
-- What a start has to know.
CREATE INDEX jobs_running ON jobs (id) WHERE state = 'running';
-- The dead letters and the cancelled are few and often asked for.
CREATE INDEX jobs_dead ON jobs (state, id) WHERE state IN ('failed', 'cancelled');

-- Whose a token is. The primary key refuses a number that is granted twice.
CREATE TABLE tokens (
    token bigint PRIMARY KEY CHECK (token BETWEEN 1 AND 9007199254740991),
    job   bigint NOT NULL
);

-- The open attempts, each with its lease as last renewed: a job's record has it only as granted,
-- or as first renewed in a life. Unlogged, because a renewal then costs no log and no fsync: of
-- 100,000 rows renewed, a logged table took 0.34 s and 14 MB of log, an unlogged one 0.18 s and
-- none; the index on the deadline, by which claims find what lapsed, makes that 0.78 s.
CREATE UNLOGGED TABLE leases (
    token         bigint  PRIMARY KEY,
    job           bigint  NOT NULL,
    lease_id      bytea   NOT NULL,
    worker        text    NOT NULL,
    session       text    COLLATE "C" NOT NULL,
    recipe        text    COLLATE "C" NOT NULL,
    definition    bytea   NOT NULL,
    granted_at_ms bigint  NOT NULL,
    ttl_ms        bigint  NOT NULL,
    deadline_ms   bigint  NOT NULL,
    renewed_at_ms bigint  NOT NULL,
    life          bigint  NOT NULL,
    backup_at_ms  bigint,
    last_chance   boolean NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1);
CREATE INDEX leases_by_job ON leases (job);
CREATE INDEX leases_by_session ON leases (session);
CREATE INDEX leases_by_end ON leases (recipe, definition, deadline_ms);
CREATE INDEX leases_by_backup ON leases (backup_at_ms) WHERE backup_at_ms IS NOT NULL;
CREATE INDEX leases_last_chance ON leases (deadline_ms) WHERE last_chance;

-- The highest heartbeat seen of each session, and pauses reported lately.
CREATE UNLOGGED TABLE sessions (
    session    text   COLLATE "C" PRIMARY KEY,
    seq        bigint NOT NULL,
    seen_at_ms bigint NOT NULL
) WITH (fillfactor = 50);
CREATE UNLOGGED TABLE pauses (
    token    bigint NOT NULL,
    pause_ms bigint NOT NULL,
    at_ms    bigint NOT NULL,
    PRIMARY KEY (token, pause_ms)
);

-- What each claim was granted, for the same claim asked again.
CREATE TABLE claims (
    session text COLLATE "C" NOT NULL,
    claim   text COLLATE "C" NOT NULL,
    -- JSON: pairs of job and token.
    grants  text NOT NULL,
    PRIMARY KEY (session, claim)
);

CREATE TABLE requests (
    scope       text  COLLATE "C" NOT NULL,
    id          text  COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    -- JSON.
    answer      text  NOT NULL,
    PRIMARY KEY (scope, id)
);

CREATE TABLE blobs (
    generation bigint PRIMARY KEY CHECK (generation BETWEEN 1 AND 9007199254740991),
    digest     bytea  NOT NULL CHECK (length(digest) = 32),
    state      text   NOT NULL CHECK (state IN ('uploading', 'present', 'condemned')),
    size_bytes bigint CHECK (size_bytes >= 0),
    CHECK (state <> 'present' OR size_bytes IS NOT NULL)
);
CREATE INDEX blobs_by_digest ON blobs (digest, generation);
-- At most one generation of a digest is in use.
CREATE UNIQUE INDEX blobs_in_use ON blobs (digest) WHERE state <> 'condemned';

CREATE TABLE keepers (
    generation bigint NOT NULL,
    kind       text   NOT NULL CHECK (kind IN ('output', 'input', 'attempt', 'until', 'object')),
    -- A job, a token, an instant or a version, as the kind says.
    keeper     bigint NOT NULL,
    PRIMARY KEY (generation, kind, keeper)
);
-- The keepers that end; outputs and inputs stay with their job.
CREATE INDEX keepers_passing ON keepers (kind, keeper)
    WHERE kind IN ('attempt', 'until', 'object');

-- The journal, packed: one row holds up to a hundred entries of one transaction.
CREATE TABLE journal (
    first  bigint PRIMARY KEY CHECK (first > 0),
    count  bigint NOT NULL CHECK (count > 0),
    -- JSON: an array of entries.
    events text   NOT NULL
);
-- Which rows of the journal tell of a job.
CREATE TABLE journal_jobs (
    job   bigint NOT NULL,
    first bigint NOT NULL,
    PRIMARY KEY (job, first)
);

CREATE TABLE locks (
    name        text   COLLATE "C" PRIMARY KEY,
    -- The lowest token still accepted.
    fence       bigint NOT NULL CHECK (fence BETWEEN 0 AND 9007199254740991),
    token       bigint,
    deadline_ms bigint,
    -- JSON: who holds it.
    holding     text,
    CHECK ((token IS NULL) = (holding IS NULL)),
    CHECK ((token IS NULL) = (deadline_ms IS NULL)),
    CHECK (token IS NULL OR token = fence)
) WITH (fillfactor = 70);
CREATE TRIGGER locks_only_rise BEFORE UPDATE OR DELETE ON locks
FOR EACH ROW EXECUTE FUNCTION palisade_only_rises();

-- Those who wait, in the order of their numbers: first come, first served on whatever server.
CREATE UNLOGGED TABLE lock_waiters (
    lock     text   COLLATE "C" NOT NULL,
    ticket   bigint NOT NULL,
    -- When it counts as gone, unless its server says that it is there.
    until_ms bigint NOT NULL,
    -- JSON.
    waiter   text   NOT NULL,
    PRIMARY KEY (lock, ticket)
) WITH (fillfactor = 50);

-- What is kept of a grant, so that its pair is told apart from one never granted.
CREATE TABLE lock_grants (
    token        bigint PRIMARY KEY CHECK (token BETWEEN 1 AND 9007199254740991),
    lock         text   COLLATE "C" NOT NULL,
    lease_id     bytea  NOT NULL CHECK (length(lease_id) = 16),
    holder       text   NOT NULL,
    request_id   text   NOT NULL,
    closed_at_ms bigint,
    close_reason text   CHECK (close_reason IN ('released', 'superseded', 'abandoned')),
    CHECK ((closed_at_ms IS NULL) = (close_reason IS NULL))
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX lock_grants_open ON lock_grants (lock) WHERE closed_at_ms IS NULL;

CREATE TABLE objects (
    key      text    COLLATE "C" PRIMARY KEY,
    -- Which numbers guard it; fixed by its first write.
    kind     text    NOT NULL CHECK (kind IN ('grants', 'submissions')),
    fence    bigint  NOT NULL CHECK (fence BETWEEN 0 AND 9007199254740991),
    readable boolean NOT NULL,
    -- JSON: the last write, and what it points at.
    last     text    NOT NULL,
    content  text,
    CHECK (readable = (content IS NOT NULL))
) WITH (fillfactor = 70);
CREATE TRIGGER objects_only_rise BEFORE UPDATE OR DELETE ON objects
FOR EACH ROW EXECUTE FUNCTION palisade_only_rises();

-- The servers that serve now: whoever is alone need not notify.
CREATE UNLOGGED TABLE servers (
    id         text   PRIMARY KEY,
    seen_at_ms bigint NOT NULL
) WITH (fillfactor = 50);
