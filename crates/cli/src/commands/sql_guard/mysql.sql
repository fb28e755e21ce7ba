-- Palisade's fence for a MySQL (8) or MariaDB (10.5) database of your own; tables are InnoDB.
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
-- The row stays locked until then: whoever comes meanwhile waits (innodb_lock_wait_timeout). Let
-- the server end the sessions of paused holders: set idle_transaction_timeout (MariaDB) or
-- wait_timeout (MySQL) to some seconds for these connections.
--
-- SQLSTATE is 45000; the error numbers are stable, and the message begins with the code:
--   30001  PF001 stale_token      a newer number was seen: stop, discard, write nothing
--   30002  PF002 foreign_token    the same number, shown with another lease id
--   30003  PF003 wrong_kind       the resource is guarded by the other kind of number
--   30004  PF004 invalid          a value is not allowed
--
-- On one resource use one kind of number: 'grants' (fencing tokens: workers that write themselves)
-- or 'submissions' (submission numbers: projections).

CREATE TABLE IF NOT EXISTS palisade_fence (
    resource  VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
    number    BIGINT UNSIGNED NOT NULL,
    lease     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    kind      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    raised_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)
) ENGINE = InnoDB;

DROP PROCEDURE IF EXISTS palisade_guard;
DROP PROCEDURE IF EXISTS palisade_raise;
DROP PROCEDURE IF EXISTS palisade_reset;

DELIMITER $$

CREATE PROCEDURE palisade_guard(
    IN guarded VARCHAR(512) CHARACTER SET utf8mb4, IN shown BIGINT UNSIGNED,
    IN lease_id VARCHAR(64) CHARACTER SET ascii, IN number_kind VARCHAR(16) CHARACTER SET ascii
) MODIFIES SQL DATA
BEGIN
    DECLARE seen_number BIGINT UNSIGNED;
    DECLARE seen_lease VARCHAR(64) CHARACTER SET ascii;
    DECLARE seen_kind VARCHAR(16) CHARACTER SET ascii;
    IF guarded IS NULL OR guarded = '' OR lease_id IS NULL OR shown IS NULL OR shown < 1
       OR shown >= 9007199254740992 OR number_kind IS NULL
       OR number_kind NOT IN ('grants', 'submissions') THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 30004, MESSAGE_TEXT =
            'PF004 invalid: resource not empty, number from 1 below 2^53, kind grants or submissions';
    END IF;
    -- Locks the row exclusively at once, new or old: a plain INSERT IGNORE would share it first,
    -- and two that share it and both want more are a deadlock.
    INSERT INTO palisade_fence (resource, number, lease, kind)
    VALUES (guarded, 0, '', number_kind)
    ON DUPLICATE KEY UPDATE palisade_fence.number = palisade_fence.number;
    SELECT number, lease, kind INTO seen_number, seen_lease, seen_kind
    FROM palisade_fence WHERE resource = guarded FOR UPDATE;
    IF seen_kind <> number_kind THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 30003, MESSAGE_TEXT =
            'PF003 wrong_kind: the resource is guarded by the other kind of number';
    ELSEIF seen_number > shown THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 30001, MESSAGE_TEXT =
            'PF001 stale_token: the number is below the fence';
    ELSEIF seen_number = shown AND seen_lease <> lease_id THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 30002, MESSAGE_TEXT =
            'PF002 foreign_token: this number was shown with another lease id';
    END IF;
    UPDATE palisade_fence SET number = shown, lease = lease_id WHERE resource = guarded;
END $$

-- A new holder's first act, where the database cannot see the grants: from here on the one before
-- is refused, also if the new holder dies before it has written anything.
CREATE PROCEDURE palisade_raise(
    IN guarded VARCHAR(512) CHARACTER SET utf8mb4, IN shown BIGINT UNSIGNED,
    IN lease_id VARCHAR(64) CHARACTER SET ascii, IN number_kind VARCHAR(16) CHARACTER SET ascii
) MODIFIES SQL DATA
BEGIN
    CALL palisade_guard(guarded, shown, lease_id, number_kind);
END $$

-- The operator's reset, for a fence that was raised by mistake: sets it to a number, which must be
-- above every number in use. Grant EXECUTE on it to operators alone.
CREATE PROCEDURE palisade_reset(
    IN guarded VARCHAR(512) CHARACTER SET utf8mb4, IN to_number BIGINT UNSIGNED
) MODIFIES SQL DATA
BEGIN
    UPDATE palisade_fence SET number = to_number, lease = 'reset' WHERE resource = guarded;
END $$

DELIMITER ;
