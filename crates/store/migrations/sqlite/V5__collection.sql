-- What is in the collector's hands. Bringing and naming blobs touches none of it.

CREATE TABLE collection (
    generation INTEGER PRIMARY KEY CHECK (generation BETWEEN 1 AND 9007199254740991),
    digest     BLOB    NOT NULL CHECK (length(digest) = 32),
    stage      TEXT    NOT NULL
        CHECK (stage = 'idle' OR stage = 'condemned' OR stage = 'cleared'),
    -- Seen unkept since; once condemned, condemned since.
    since_ms   INTEGER NOT NULL CHECK (since_ms >= 0)
) STRICT;

CREATE INDEX collection_stages ON collection (stage, since_ms, generation);

CREATE TRIGGER collection_never_goes_back BEFORE UPDATE ON collection
WHEN new.digest <> old.digest OR (old.stage <> 'idle' AND new.stage = 'idle')
    OR (old.stage = 'cleared' AND new.stage <> 'cleared')
BEGIN
    SELECT RAISE(ABORT, 'what is condemned stays so');
END;

-- A row that may still be named is not forgotten.
CREATE TRIGGER blobs_forgotten_when_condemned BEFORE DELETE ON blobs
WHEN old.state <> 'condemned'
BEGIN
    SELECT RAISE(ABORT, 'only a tombstone is forgotten');
END;

-- Jobs whose time is over: nothing of theirs is kept by them any more.
CREATE TABLE released_jobs (
    job INTEGER PRIMARY KEY CHECK (job BETWEEN 1 AND 9007199254740991)
) STRICT;
