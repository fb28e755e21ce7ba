-- Palisade's fence for an SQLite database of your own (3.24 or newer).
--
-- Insert into palisade_guard first in the transaction that writes, with the number that you hold:
--
--   BEGIN IMMEDIATE;
--   INSERT INTO palisade_guard (resource, number, lease, kind)
--   VALUES ('export-42', 34, '5c0e…', 'grants');                 -- token, lease id
--   UPDATE exports SET url = '…' WHERE id = 42;
--   COMMIT;
--
-- The insert fails when a newer number was seen, and otherwise raises the fence, so that the check
-- and the write are one transaction. When it fails, ROLLBACK: the transaction is still open.
--
-- The message begins with a stable code:
--   PF001 stale_token      a newer number was seen: stop, discard, write nothing
--   PF002 foreign_token    the same number, shown with another lease id
--   PF003 wrong_kind       the resource is guarded by the other kind of number
--   PF004 invalid          a value is not allowed
--
-- On one resource use one kind of number: 'grants' (fencing tokens: workers that write themselves)
-- or 'submissions' (submission numbers: projections).

CREATE TABLE IF NOT EXISTS palisade_fence (
    resource  TEXT    PRIMARY KEY NOT NULL,
    number    INTEGER NOT NULL CHECK (number >= 0 AND number < 9007199254740992),
    lease     TEXT    NOT NULL,
    kind      TEXT    NOT NULL CHECK (kind IN ('grants', 'submissions')),
    raised_at TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) WITHOUT ROWID;

CREATE VIEW IF NOT EXISTS palisade_guard AS
    SELECT resource, number, lease, kind FROM palisade_fence;

CREATE TRIGGER IF NOT EXISTS palisade_guard_insert INSTEAD OF INSERT ON palisade_guard
BEGIN
    SELECT RAISE(ABORT, 'PF004 invalid: the resource must not be empty, the number from 1 below 2^53, the kind grants or submissions')
    WHERE NEW.resource IS NULL OR NEW.resource = '' OR NEW.lease IS NULL
       OR typeof(NEW.number) <> 'integer' OR NEW.number < 1 OR NEW.number >= 9007199254740992
       OR NEW.kind IS NULL OR NEW.kind NOT IN ('grants', 'submissions');
    SELECT RAISE(ABORT, 'PF003 wrong_kind: the resource is guarded by the other kind of number')
    FROM palisade_fence WHERE resource = NEW.resource AND kind <> NEW.kind;
    SELECT RAISE(ABORT, 'PF001 stale_token: the number is below the fence')
    FROM palisade_fence WHERE resource = NEW.resource AND number > NEW.number;
    SELECT RAISE(ABORT, 'PF002 foreign_token: this number was shown with another lease id')
    FROM palisade_fence
    WHERE resource = NEW.resource AND number = NEW.number AND lease <> NEW.lease;
    INSERT INTO palisade_fence (resource, number, lease, kind)
    VALUES (NEW.resource, NEW.number, NEW.lease, NEW.kind)
    ON CONFLICT (resource) DO UPDATE
        SET number = excluded.number, lease = excluded.lease, raised_at = excluded.raised_at;
END;

-- A new holder's first act, where the database cannot see the grants, is the same insert in a
-- transaction of its own: from there on the one before is refused, also if the new holder dies
-- before it has written anything.
--
-- The operator's reset, for a fence that was raised by mistake, to a number above all in use:
--   UPDATE palisade_fence SET number = 40, lease = 'reset' WHERE resource = 'export-42';
