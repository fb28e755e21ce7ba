-- Empty after any crash recovery, as all that is not logged: also after that of a single backend, which
-- the start time of the server does not tell of.
CREATE UNLOGGED TABLE alive (
    one integer PRIMARY KEY CHECK (one = 1)
);

-- The database and the table that this row was written to, as the cluster numbers them: a copy that
-- was loaded into the same cluster has others.
ALTER TABLE meta ADD COLUMN place text;

-- The place for artefacts that the store belongs to, by the name that the place has for itself.
ALTER TABLE meta ADD COLUMN artefacts text;
