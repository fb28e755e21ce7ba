-- Palisade's fence for an SQLite database of your own (3.24 or newer; tested on 3.40). Install it
-- again over an older one: its fences stay.
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
-- Without BEGIN the guard is a transaction of its own, and what you write after it is not guarded.
--
-- The message begins with a stable code:
--   PF001 stale_token      a newer number was seen: stop, discard, write nothing
--   PF002 foreign_token    the same number, shown with another lease id
--   PF003 wrong_kind       the resource is guarded by the other kind of number
--   PF004 invalid          a value is not allowed
-- SQLITE_BUSY (database is locked) is no refusal: ROLLBACK, and begin again with the same number.
--
-- SQLite never ends a transaction for its owner: one that is paused in the middle keeps everybody
-- waiting until it wakes or its process is killed.
--
-- On one resource use one kind of number: 'grants' (fencing tokens with their lease id: workers
-- that write themselves) or 'submissions' (submission numbers with the lease id '': projections).

SAVEPOINT palisade_install;

CREATE TABLE IF NOT EXISTS palisade_fence (
    resource  TEXT    PRIMARY KEY NOT NULL,
    number    INTEGER NOT NULL CHECK (number >= 0 AND number < 9007199254740992),
    lease     TEXT    NOT NULL,
    kind      TEXT    NOT NULL CHECK (kind IN ('grants', 'submissions')),
    raised_at TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) WITHOUT ROWID;

DROP VIEW IF EXISTS palisade_guard;
CREATE VIEW palisade_guard AS SELECT resource, number, lease, kind FROM palisade_fence;

-- Types are looked at too: the same name once as text and once as a blob would be two fences.
-- An empty lease id is nobody's: whoever shows the number first is its holder.
CREATE TRIGGER palisade_guard_insert INSTEAD OF INSERT ON palisade_guard
BEGIN
    SELECT RAISE(ABORT, 'PF004 invalid: the resource must be text and not empty, the number an integer from 1 below 2^53, the kind grants (with a lease id) or submissions')
    WHERE typeof(NEW.resource) <> 'text' OR NEW.resource = '' OR typeof(NEW.number) <> 'integer'
       OR NEW.number < 1 OR NEW.number >= 9007199254740992 OR typeof(NEW.kind) <> 'text'
       OR NEW.kind NOT IN ('grants', 'submissions') OR typeof(NEW.lease) <> 'text'
       OR (NEW.lease = '' AND NEW.kind = 'grants');
    SELECT RAISE(ABORT, 'PF003 wrong_kind: the resource is guarded by the other kind of number')
    FROM palisade_fence WHERE resource = NEW.resource AND kind <> NEW.kind;
    SELECT RAISE(ABORT, 'PF001 stale_token: the number is below the fence')
    FROM palisade_fence WHERE resource = NEW.resource AND number > NEW.number;
    SELECT RAISE(ABORT, 'PF002 foreign_token: this number was shown with another lease id')
    FROM palisade_fence
    WHERE resource = NEW.resource AND number = NEW.number AND lease NOT IN ('', NEW.lease);
    INSERT INTO palisade_fence (resource, number, lease, kind)
    VALUES (NEW.resource, NEW.number, NEW.lease, NEW.kind)
    ON CONFLICT (resource) DO UPDATE
        SET number = excluded.number, lease = excluded.lease, raised_at = excluded.raised_at;
END;

-- A new holder's first act, where the database cannot see the grants, is the same insert in a
-- transaction of its own: from there on the one before is refused, also if the new holder dies
-- before it has written.

-- The operator's reset, for a fence that was raised by mistake, or with the wrong kind: from there
-- on the number and what is above it are accepted, of that kind. Choose the number of the present
-- holder; without one, the number after the highest that was ever granted. Not for programs.
--   INSERT INTO palisade_reset (resource, number, kind) VALUES ('export-42', 34, 'grants');
DROP VIEW IF EXISTS palisade_reset;
CREATE VIEW palisade_reset AS SELECT resource, number, kind FROM palisade_fence;

CREATE TRIGGER palisade_reset_insert INSTEAD OF INSERT ON palisade_reset
BEGIN
    SELECT RAISE(ABORT, 'PF004 invalid: the resource must have a fence, the number be an integer from 1 below 2^53, the kind grants or submissions')
    WHERE typeof(NEW.number) <> 'integer' OR NEW.number < 1 OR NEW.number >= 9007199254740992
       OR NEW.kind IS NULL OR NEW.kind NOT IN ('grants', 'submissions')
       OR NOT EXISTS (SELECT 1 FROM palisade_fence WHERE resource = NEW.resource);
    UPDATE palisade_fence
    SET number = NEW.number, lease = '', kind = NEW.kind,
        raised_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
    WHERE resource = NEW.resource;
END;

RELEASE palisade_install;
