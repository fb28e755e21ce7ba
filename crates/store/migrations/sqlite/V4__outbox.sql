-- Notifications: who wants to be told, and what is told to whom.

CREATE TABLE endpoints (
    -- `wh_` and 16 hexadecimal digits.
    id       TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 19),
    tenant   TEXT NOT NULL,
    url      TEXT NOT NULL,
    -- JSON: the whole record, the secrets that sign included. The file is its owner's alone.
    endpoint TEXT NOT NULL,
    UNIQUE (tenant, url)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    number     INTEGER PRIMARY KEY CHECK (number BETWEEN 1 AND 9007199254740991),
    endpoint   TEXT    NOT NULL,
    job        INTEGER NOT NULL,
    submission INTEGER NOT NULL,
    event      TEXT    NOT NULL,
    token      INTEGER,
    seq        INTEGER NOT NULL,
    at_ms      INTEGER NOT NULL,
    -- What is sent, byte for byte.
    body       TEXT    NOT NULL,
    standing   TEXT    NOT NULL CHECK (standing IN ('pending', 'leased', 'delivered', 'dead')),
    -- The lease of whoever tries it.
    lease_id   BLOB CHECK (length(lease_id) = 16),
    -- Pending: not before this. Leased: the lease's deadline. Else: when it came there.
    due_at_ms  INTEGER NOT NULL,
    tries      INTEGER NOT NULL,
    queued_at_ms INTEGER NOT NULL,
    -- JSON: what the last failed try came to.
    last       TEXT,
    CHECK ((standing = 'leased') = (lease_id IS NOT NULL))
) STRICT;

-- What is due, and what comes first among what is open of one job at one endpoint.
CREATE INDEX outbox_due ON outbox (endpoint, due_at_ms, number)
    WHERE standing IN ('pending', 'leased');
CREATE INDEX outbox_next ON outbox (due_at_ms) WHERE standing IN ('pending', 'leased');
CREATE INDEX outbox_order ON outbox (endpoint, job, number)
    WHERE standing IN ('pending', 'leased');
CREATE INDEX outbox_leased ON outbox (endpoint, due_at_ms) WHERE standing = 'leased';
-- For listings.
CREATE INDEX outbox_of_endpoint ON outbox (endpoint, number);

CREATE TRIGGER outbox_says_the_same BEFORE UPDATE ON outbox
WHEN new.number <> old.number OR new.endpoint <> old.endpoint OR new.job <> old.job
    OR new.submission <> old.submission OR new.event <> old.event
    OR new.token IS NOT old.token OR new.seq <> old.seq OR new.body <> old.body
BEGIN
    SELECT RAISE(ABORT, 'what is told never changes');
END;
