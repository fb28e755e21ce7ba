-- What history may be forgotten: by its age, in small steps. Positions in the journal are counted
-- here, so that they go on where they were, however much of it is gone.

ALTER TABLE meta ADD COLUMN journal_next INTEGER NOT NULL DEFAULT 1 CHECK (journal_next > 0);
-- Up to this position entries may be missing.
ALTER TABLE meta ADD COLUMN journal_pruned INTEGER NOT NULL DEFAULT 0
    CHECK (journal_pruned BETWEEN 0 AND journal_next - 1);
UPDATE meta SET journal_next =
    coalesce((SELECT first + count FROM journal ORDER BY first DESC LIMIT 1), 1);

DROP TRIGGER meta_only_rises;
CREATE TRIGGER meta_only_rises BEFORE UPDATE ON meta
WHEN new.counter < old.counter OR new.clock_ms < old.clock_ms OR new.life < old.life
    OR new.journal_next < old.journal_next OR new.journal_pruned < old.journal_pruned
BEGIN
    SELECT RAISE(ABORT, 'the counter, the clock, the life and positions never fall');
END;

-- When the row's newest entry was written.
DROP TRIGGER journal_never_changes;
ALTER TABLE journal ADD COLUMN at_ms INTEGER NOT NULL DEFAULT 0 CHECK (at_ms >= 0);
UPDATE journal SET at_ms = json_extract(events, '$[#-1].at_ms');
CREATE TRIGGER journal_never_changes BEFORE UPDATE ON journal
BEGIN
    SELECT RAISE(ABORT, 'the journal is append-only');
END;

-- When the answer was given. What is here already counts as given now: it is kept rather longer.
ALTER TABLE claims ADD COLUMN at_ms INTEGER NOT NULL DEFAULT 0 CHECK (at_ms >= 0);
UPDATE claims SET at_ms = (SELECT clock_ms FROM meta);
CREATE INDEX claims_by_age ON claims (at_ms);
ALTER TABLE requests ADD COLUMN at_ms INTEGER NOT NULL DEFAULT 0 CHECK (at_ms >= 0);
UPDATE requests SET at_ms = (SELECT clock_ms FROM meta);
CREATE INDEX requests_by_age ON requests (at_ms);
