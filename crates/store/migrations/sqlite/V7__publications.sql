-- Publications: a submission may name where its job's outputs are to be shown.

ALTER TABLE submissions ADD COLUMN publish_key TEXT;
-- JSON: what came of it. None: it is not carried out yet, or was withdrawn before.
ALTER TABLE submissions ADD COLUMN publication TEXT
    CHECK (publication IS NULL OR publish_key IS NOT NULL);

CREATE TRIGGER submissions_published_once BEFORE UPDATE ON submissions
WHEN new.publish_key IS NOT old.publish_key
    OR (old.publication IS NOT NULL AND new.publication IS NOT old.publication)
BEGIN
    SELECT RAISE(ABORT, 'what came of a publication stays');
END;

-- The publications that are due: written by the commit of their job, or by the submission that
-- found it complete, and taken off by the transaction that carries them out.
CREATE TABLE publications_due (
    submission INTEGER PRIMARY KEY CHECK (submission BETWEEN 1 AND 9007199254740991),
    job        INTEGER NOT NULL
) STRICT;
