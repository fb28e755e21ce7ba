-- Palisade's fence for a MySQL (8) or MariaDB (10.5 or newer; tested on 10.11) database of your
-- own; tables are InnoDB. Install it again over an older one: its fences stay, but rights on the
-- procedures must be granted again.
--
-- Call palisade_guard first in the transaction that writes, with the number that you hold:
--
--   START TRANSACTION;
--   CALL palisade_guard('export-42', 34, '5c0e…', 'grants');     -- token, lease id
--   UPDATE exports SET url = '…' WHERE id = 42;
--   COMMIT;
--
-- It signals an error when a newer number was seen, and otherwise raises the fence, so that the
-- check and the write are one transaction. When it fails, ROLLBACK: the transaction is still open.
-- Without START TRANSACTION the guard is a transaction of its own, and what you write after it is
-- not guarded; nor is it after a statement that commits by itself, as CREATE and ALTER do.
--
-- The row stays locked until the end of the transaction: whoever comes meanwhile waits, and is
-- judged by what was committed. MySQL does not know a limit for silence within a transaction: set
-- wait_timeout for these connections. Switch off your driver's automatic reconnection: a statement
-- after it would be outside the transaction that was guarded.
--
-- SQLSTATE and error number are stable, and the message begins with the former:
--   PF001  50001  stale_token      a newer number was seen: stop, discard, write nothing
--   PF002  50002  foreign_token    the same number, shown with another lease id
--   PF003  50003  wrong_kind       the resource is guarded by the other kind of number
--   PF004  50004  invalid          a value is not allowed
-- 1213 (deadlock), 1205 (lock wait timeout) and MariaDB's 1020 (innodb_snapshot_isolation) are no
-- refusals: ROLLBACK, and begin again with the same number.
--
-- On one resource use one kind of number: 'grants' (fencing tokens with their lease id: workers
-- that write themselves) or 'submissions' (submission numbers with the lease id '': projections).
-- Resources that differ in trailing spaces alone are one.
--
-- Applications need EXECUTE on palisade_guard and palisade_raise, and no right on the table.

CREATE TABLE IF NOT EXISTS palisade_fence (
    resource  VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
    number    BIGINT NOT NULL CHECK (number >= 0 AND number < 9007199254740992),
    lease     VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    kind      VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
              CHECK (kind IN ('grants', 'submissions')),
    raised_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

DROP PROCEDURE IF EXISTS palisade_guard;
DROP PROCEDURE IF EXISTS palisade_raise;
DROP PROCEDURE IF EXISTS palisade_reset;

DELIMITER $$

-- The lengths are looked at here: outside strict mode a value would be cut to fit a shorter type,
-- and two resources would share a fence.
CREATE PROCEDURE palisade_guard(
    IN guarded TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN shown BIGINT,
    IN lease_id TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN number_kind TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
) MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE seen_number BIGINT;
    DECLARE seen_lease VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE seen_kind VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE told VARCHAR(128) CHARACTER SET utf8mb4;
    IF guarded IS NULL OR guarded = '' OR CHAR_LENGTH(guarded) > 512
       OR shown IS NULL OR shown < 1 OR shown >= 9007199254740992
       OR number_kind IS NULL OR number_kind NOT IN ('grants', 'submissions')
       OR lease_id IS NULL OR CHAR_LENGTH(lease_id) > 64
       OR (lease_id = '' AND number_kind = 'grants') THEN
        SIGNAL SQLSTATE 'PF004' SET MYSQL_ERRNO = 50004, MESSAGE_TEXT =
            'PF004 invalid: resource 1 to 512 characters, number 1 to 2^53-1, kind grants (with a lease id) or submissions';
    END IF;
    -- A holder that is paused in mid-transaction would keep the row locked: after half a minute of
    -- silence MariaDB ends its transaction, unless you have set a limit of your own.
    /*M!100301
    IF @@SESSION.idle_transaction_timeout = 0 AND @@SESSION.idle_write_transaction_timeout = 0 THEN
        SET SESSION idle_write_transaction_timeout = 30;
    END IF;
    */
    -- One statement locks the row exclusively, new or old, and raises it only where the number
    -- allows, so that the fence cannot fall where each statement is a transaction of its own.
    -- The lease id is set before the number that it is decided by. An empty one is nobody's:
    -- whoever shows the number first is its holder.
    INSERT INTO palisade_fence (resource, number, lease, kind)
    VALUES (guarded, shown, lease_id, number_kind)
    ON DUPLICATE KEY UPDATE
        palisade_fence.lease = IF(
            palisade_fence.kind = number_kind
            AND (palisade_fence.number < shown
                 OR (palisade_fence.number = shown AND palisade_fence.lease = '')),
            lease_id, palisade_fence.lease),
        palisade_fence.number = IF(
            palisade_fence.kind = number_kind AND palisade_fence.number < shown,
            shown, palisade_fence.number);
    SELECT number, lease, kind INTO seen_number, seen_lease, seen_kind
    FROM palisade_fence WHERE resource = guarded FOR UPDATE;
    IF seen_kind <> number_kind THEN
        SET told = CONCAT('PF003 wrong_kind: guarded by the numbers of ', seen_kind);
        SIGNAL SQLSTATE 'PF003' SET MYSQL_ERRNO = 50003, MESSAGE_TEXT = told;
    ELSEIF seen_number > shown THEN
        SET told = CONCAT('PF001 stale_token: ', shown, ' is below the fence, which stands at ',
            seen_number);
        SIGNAL SQLSTATE 'PF001' SET MYSQL_ERRNO = 50001, MESSAGE_TEXT = told;
    ELSEIF seen_lease <> lease_id THEN
        SET told = CONCAT('PF002 foreign_token: ', shown, ' was shown with another lease id');
        SIGNAL SQLSTATE 'PF002' SET MYSQL_ERRNO = 50002, MESSAGE_TEXT = told;
    END IF;
END $$

-- A new holder's first act, where the database cannot see the grants, in a transaction of its own:
-- from there on the one before is refused, also if the new holder dies before it has written.
CREATE PROCEDURE palisade_raise(
    IN guarded TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN shown BIGINT,
    IN lease_id TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN number_kind TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
) MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    CALL palisade_guard(guarded, shown, lease_id, number_kind);
END $$

-- The operator's reset, for a fence that was raised by mistake, or with the wrong kind: from there
-- on `to_number` and what is above it are accepted, of that kind. Choose the number of the present
-- holder; without one, the number after the highest that was ever granted. Not for programs: grant
-- EXECUTE on it to operators alone.
CREATE PROCEDURE palisade_reset(
    IN guarded TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN to_number BIGINT,
    IN number_kind TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
) MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    IF to_number IS NULL OR to_number < 1 OR to_number >= 9007199254740992
       OR number_kind IS NULL OR number_kind NOT IN ('grants', 'submissions')
       OR guarded IS NULL OR NOT EXISTS (SELECT 1 FROM palisade_fence WHERE resource = guarded) THEN
        SIGNAL SQLSTATE 'PF004' SET MYSQL_ERRNO = 50004, MESSAGE_TEXT =
            'PF004 invalid: the resource must have a fence, number 1 to 2^53-1, kind grants or submissions';
    END IF;
    UPDATE palisade_fence SET number = to_number, lease = '', kind = number_kind
    WHERE resource = guarded;
END $$

DELIMITER ;
