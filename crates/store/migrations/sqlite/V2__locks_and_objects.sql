-- Lease locks, and fenced objects.

CREATE TABLE locks (
    name    TEXT    PRIMARY KEY,
    -- The lowest token still accepted.
    fence   INTEGER NOT NULL CHECK (fence BETWEEN 0 AND 9007199254740991),
    -- The open grant, if there is one. Those who wait live in memory.
    token   INTEGER CHECK (token BETWEEN 1 AND 9007199254740991),
    -- JSON: who holds it, and its lease as granted, or as first renewed in a life.
    holding TEXT,
    CHECK ((token IS NULL) = (holding IS NULL)),
    CHECK (token IS NULL OR token = fence)
) STRICT, WITHOUT ROWID;

CREATE INDEX locks_held ON locks (name) WHERE token IS NOT NULL;

CREATE TRIGGER locks_fence_never_falls BEFORE UPDATE OF fence ON locks
WHEN new.fence < old.fence
BEGIN
    SELECT RAISE(ABORT, 'a fence never falls');
END;

CREATE TRIGGER locks_never_forgotten BEFORE DELETE ON locks
BEGIN
    SELECT RAISE(ABORT, 'a fence outlives what it guards');
END;

-- What is kept of a grant, so that its pair is told apart from one never granted.
CREATE TABLE lock_grants (
    token        INTEGER PRIMARY KEY CHECK (token BETWEEN 1 AND 9007199254740991),
    lock         TEXT    NOT NULL,
    lease_id     BLOB    NOT NULL CHECK (length(lease_id) = 16),
    holder       TEXT    NOT NULL,
    request_id   TEXT    NOT NULL,
    closed_at_ms INTEGER,
    close_reason TEXT CHECK (close_reason IN ('released', 'superseded', 'abandoned')),
    CHECK ((closed_at_ms IS NULL) = (close_reason IS NULL))
) STRICT;

CREATE UNIQUE INDEX lock_grants_open ON lock_grants (lock) WHERE closed_at_ms IS NULL;

CREATE TRIGGER lock_grants_closed_once BEFORE UPDATE ON lock_grants
WHEN old.closed_at_ms IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'a grant is closed once');
END;

CREATE TABLE objects (
    key      TEXT    PRIMARY KEY,
    -- Which numbers guard it; fixed by its first write.
    kind     TEXT    NOT NULL CHECK (kind IN ('grants', 'submissions')),
    -- The lowest number still accepted.
    fence    INTEGER NOT NULL CHECK (fence BETWEEN 0 AND 9007199254740991),
    -- Whether there is something to read; if not, it is a tombstone.
    readable INTEGER NOT NULL CHECK (readable IN (0, 1)),
    -- JSON: the last write, and what it points at.
    last     TEXT    NOT NULL,
    content  TEXT,
    CHECK (readable = (content IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER objects_fence_never_falls BEFORE UPDATE ON objects
WHEN new.fence < old.fence OR new.kind <> old.kind
BEGIN
    SELECT RAISE(ABORT, 'a fence never falls, and a name keeps its kind of number');
END;

CREATE TRIGGER objects_never_forgotten BEFORE DELETE ON objects
BEGIN
    SELECT RAISE(ABORT, 'a fence outlives what it guards');
END;

-- Whose a token is, for whoever shows it at an object.
CREATE INDEX attempts_by_token ON attempts (token);

-- Objects keep blobs too: the keeper is then the version that the object has.
DROP INDEX keepers_passing;
ALTER TABLE keepers RENAME TO keepers_before;
CREATE TABLE keepers (
    generation INTEGER NOT NULL,
    kind       TEXT    NOT NULL CHECK (kind IN ('output', 'input', 'attempt', 'until', 'object')),
    -- A job, a token, an instant or a version, as the kind says.
    keeper     INTEGER NOT NULL,
    PRIMARY KEY (generation, kind, keeper)
) STRICT, WITHOUT ROWID;
INSERT INTO keepers SELECT generation, kind, keeper FROM keepers_before;
DROP TABLE keepers_before;
CREATE INDEX keepers_passing ON keepers (kind, keeper)
    WHERE kind IN ('attempt', 'until', 'object');
