-- Grants of locks by their request; what is in the collector's hands; notifications; what may be
-- forgotten; publications. Servers of the version before may go on meanwhile: what they do not write
-- has a default.

-- A request is granted a lock once: its late duplicate is told how that grant ended.
CREATE INDEX lock_grants_by_request ON lock_grants (request_id, lock, token);
-- Grants that ended long ago are forgotten; their pairs are unknown then, and refused all the same.
CREATE INDEX lock_grants_ended ON lock_grants (closed_at_ms, token) WHERE closed_at_ms IS NOT NULL;

-- By capability, as it is asked for: whoever claims does not read the backups of other recipes.
DROP INDEX leases_by_backup;
CREATE INDEX leases_by_backup ON leases (recipe, definition, backup_at_ms)
    WHERE backup_at_ms IS NOT NULL;

-- What is in the collector's hands. Bringing and naming blobs touches none of it.
CREATE TABLE collection (
    generation bigint PRIMARY KEY CHECK (generation BETWEEN 1 AND 9007199254740991),
    digest     bytea  NOT NULL CHECK (length(digest) = 32),
    stage      text   NOT NULL CHECK (stage IN ('idle', 'condemned', 'cleared')),
    -- Seen unkept since; once condemned, condemned since.
    since_ms   bigint NOT NULL CHECK (since_ms >= 0)
);
CREATE INDEX collection_stages ON collection (stage, since_ms, generation);

CREATE FUNCTION palisade_never_goes_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.digest <> old.digest OR (old.stage <> 'idle' AND new.stage = 'idle')
        OR (old.stage = 'cleared' AND new.stage <> 'cleared') THEN
        RAISE EXCEPTION 'what is condemned stays so';
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER collection_never_goes_back BEFORE UPDATE ON collection
FOR EACH ROW EXECUTE FUNCTION palisade_never_goes_back();

-- A row that may still be named is not forgotten.
CREATE FUNCTION palisade_only_tombstones() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF old.state <> 'condemned' THEN
        RAISE EXCEPTION 'only a tombstone is forgotten';
    END IF;
    RETURN old;
END $$;
CREATE TRIGGER blobs_forgotten_when_condemned BEFORE DELETE ON blobs
FOR EACH ROW EXECUTE FUNCTION palisade_only_tombstones();

-- Jobs whose time is over: nothing of theirs is kept by them any more. Which those are is decided
-- by the record; the column only finds them.
ALTER TABLE jobs ADD COLUMN moved_at_ms bigint NOT NULL DEFAULT 0;
UPDATE jobs SET moved_at_ms = (record::json ->> 'moved_at')::bigint;
ALTER TABLE jobs ADD COLUMN released boolean NOT NULL DEFAULT false;

-- Notifications: who wants to be told, and what is told to whom.
CREATE TABLE endpoints (
    -- `wh_` and 16 hexadecimal digits.
    id       text COLLATE "C" PRIMARY KEY CHECK (length(id) = 19),
    tenant   text COLLATE "C" NOT NULL,
    url      text COLLATE "C" NOT NULL,
    -- JSON: the whole record, the secrets that sign included.
    endpoint text NOT NULL,
    UNIQUE (tenant, url)
);

CREATE TABLE outbox (
    number       bigint PRIMARY KEY CHECK (number BETWEEN 1 AND 9007199254740991),
    endpoint     text   COLLATE "C" NOT NULL,
    job          bigint NOT NULL,
    submission   bigint NOT NULL,
    event        text   NOT NULL,
    token        bigint,
    seq          bigint NOT NULL,
    at_ms        bigint NOT NULL,
    -- What is sent, byte for byte.
    body         text   NOT NULL,
    standing     text   NOT NULL CHECK (standing IN ('pending', 'leased', 'delivered', 'dead')),
    -- The lease of whoever tries it.
    lease_id     bytea  CHECK (length(lease_id) = 16),
    -- Pending: not before this. Leased: the lease's deadline. Else: when it came there.
    due_at_ms    bigint NOT NULL,
    tries        bigint NOT NULL,
    queued_at_ms bigint NOT NULL,
    -- JSON: what the last failed try came to.
    last         text,
    CHECK ((standing = 'leased') = (lease_id IS NOT NULL))
);
-- What is due, and what comes first among what is open of one job at one endpoint.
CREATE INDEX outbox_due ON outbox (endpoint, due_at_ms, number)
    WHERE standing IN ('pending', 'leased');
CREATE INDEX outbox_next ON outbox (due_at_ms) WHERE standing IN ('pending', 'leased');
CREATE INDEX outbox_order ON outbox (endpoint, job, number)
    WHERE standing IN ('pending', 'leased');
CREATE INDEX outbox_leased ON outbox (endpoint, due_at_ms) WHERE standing = 'leased';
-- For listings.
CREATE INDEX outbox_of_endpoint ON outbox (endpoint, number);

CREATE FUNCTION palisade_says_the_same() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (new.number, new.endpoint, new.job, new.submission, new.event, new.token, new.seq, new.body)
        IS DISTINCT FROM
        (old.number, old.endpoint, old.job, old.submission, old.event, old.token, old.seq, old.body)
    THEN
        RAISE EXCEPTION 'what is told never changes';
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER outbox_says_the_same BEFORE UPDATE ON outbox
FOR EACH ROW EXECUTE FUNCTION palisade_says_the_same();

-- Up to this position entries of the journal may be missing.
ALTER TABLE head ADD COLUMN pruned bigint NOT NULL DEFAULT 0
    CHECK (pruned BETWEEN 0 AND position);

-- When an answer was given. What is here already counts as given now: it is kept rather longer.
ALTER TABLE claims ADD COLUMN at_ms bigint NOT NULL
    DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
CREATE INDEX claims_by_age ON claims (at_ms);
ALTER TABLE requests ADD COLUMN at_ms bigint NOT NULL
    DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
CREATE INDEX requests_by_age ON requests (at_ms);

-- The publications that are due: written by the commit of their job, or by the submission that
-- found it complete, and taken off by the transaction that carries them out.
CREATE TABLE publications_due (
    submission bigint PRIMARY KEY CHECK (submission BETWEEN 1 AND 9007199254740991),
    job        bigint NOT NULL
);
