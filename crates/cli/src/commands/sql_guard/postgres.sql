-- Palisade's fence for a PostgreSQL database of your own (9.6 or newer; tested on 15). Install it
-- as the owner of the schema that shall hold it; again over an older one, whose fences stay.
--
-- Call palisade_guard first in the transaction that writes, with the number that you hold:
--
--   BEGIN;
--   SELECT palisade_guard('export-42', 34, '5c0e…', 'grants');   -- token, lease id
--   UPDATE exports SET url = '…' WHERE id = 42;
--   COMMIT;
--
-- It raises an error when a newer number was seen, and otherwise raises the fence, so that the
-- check and the write are one transaction. The row stays locked until the end of the transaction:
-- whoever comes meanwhile waits, and is judged by what was committed. Without BEGIN the guard is a
-- transaction of its own, and what you write after it is not guarded.
--
-- SQLSTATE of the errors, stable; the message begins with it too:
--   PF001  stale_token      a newer number was seen: stop, discard, write nothing
--   PF002  foreign_token    the same number, shown with another lease id
--   PF003  wrong_kind       the resource is guarded by the other kind of number
--   PF004  invalid          a value is not allowed
-- 40001 (serialization failure, above READ COMMITTED alone) and 40P01 (deadlock) are no refusals:
-- ROLLBACK, and begin again with the same number.
--
-- On one resource use one kind of number: 'grants' (fencing tokens with their lease id: workers
-- that write themselves) or 'submissions' (submission numbers with the lease id '': projections,
-- such as webhooks' receivers).
--
-- Nobody but the owner may call the functions or touch the table, until you say
--   GRANT EXECUTE ON FUNCTION palisade_guard(text, bigint, text, text),
--       palisade_raise(text, bigint, text, text) TO your_application;

-- The functions find the table in the schema that they are installed to, whatever the caller's
-- search path: two tables would be two fences.
DO $palisade$ BEGIN
    PERFORM set_config('palisade.search_path', current_setting('search_path'), false);
    PERFORM set_config('search_path', format('%I, pg_temp', current_schema()), false);
END $palisade$;

CREATE TABLE IF NOT EXISTS palisade_fence (
    resource   text        PRIMARY KEY,
    number     bigint      NOT NULL CHECK (number >= 0 AND number < 9007199254740992),
    lease      text        NOT NULL,
    kind       text        NOT NULL CHECK (kind IN ('grants', 'submissions')),
    raised_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE palisade_fence IS
    'Lowest number still accepted, per resource. Rows outlive what they guard: never delete one.';

CREATE OR REPLACE FUNCTION palisade_guard(
    guarded text, shown bigint, lease_id text, number_kind text DEFAULT 'grants'
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $palisade$
DECLARE
    seen palisade_fence%ROWTYPE;
BEGIN
    IF guarded IS NULL OR guarded = '' OR shown IS NULL OR shown < 1 OR shown >= 9007199254740992
       OR number_kind IS NULL OR number_kind NOT IN ('grants', 'submissions')
       OR lease_id IS NULL OR (lease_id = '' AND number_kind = 'grants') THEN
        RAISE EXCEPTION 'PF004 invalid: resource %, number %, kind %: the resource must not be '
            'empty, the number from 1 below 2^53, the kind grants (with a lease id) or submissions',
            guarded, shown, number_kind USING ERRCODE = 'PF004';
    END IF;
    -- A holder that is paused in mid-transaction would keep the row locked: after half a minute of
    -- silence the database ends its transaction, unless you have set a limit of your own.
    IF current_setting('idle_in_transaction_session_timeout') = '0' THEN
        PERFORM set_config('idle_in_transaction_session_timeout', '30s', true);
    END IF;
    -- Locks the row, new or old, and raises it only where the number allows. An empty lease id is
    -- nobody's: whoever shows the number first is its holder.
    INSERT INTO palisade_fence AS fence (resource, number, lease, kind)
    VALUES (guarded, shown, lease_id, number_kind)
    ON CONFLICT (resource) DO UPDATE
        SET number = EXCLUDED.number, lease = EXCLUDED.lease, raised_at = clock_timestamp()
        WHERE fence.kind = EXCLUDED.kind
          AND (fence.number < EXCLUDED.number
               OR (fence.number = EXCLUDED.number AND fence.lease IN ('', EXCLUDED.lease)));
    IF FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO seen FROM palisade_fence WHERE resource = guarded;
    IF seen.kind <> number_kind THEN
        RAISE EXCEPTION 'PF003 wrong_kind: % is guarded by the numbers of %', guarded, seen.kind
            USING ERRCODE = 'PF003';
    ELSIF seen.number > shown THEN
        RAISE EXCEPTION 'PF001 stale_token: % is below the fence of %, which stands at %',
            shown, guarded, seen.number USING ERRCODE = 'PF001';
    ELSE
        RAISE EXCEPTION 'PF002 foreign_token: % was shown for % with another lease id',
            shown, guarded USING ERRCODE = 'PF002';
    END IF;
END
$palisade$;

-- A new holder's first act, where the database cannot see the grants, in a transaction of its own:
-- from there on the one before is refused, also if the new holder dies before it has written.
CREATE OR REPLACE FUNCTION palisade_raise(
    guarded text, shown bigint, lease_id text, number_kind text DEFAULT 'grants'
) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $palisade$
    SELECT palisade_guard(guarded, shown, lease_id, number_kind);
$palisade$;

-- The operator's reset, for a fence that was raised by mistake, or with the wrong kind: from there
-- on `to_number` and what is above it are accepted, of that kind. Choose the number of the present
-- holder; without one, the number after the highest that was ever granted. Not for programs.
CREATE OR REPLACE FUNCTION palisade_reset(guarded text, to_number bigint, number_kind text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $palisade$
BEGIN
    UPDATE palisade_fence
    SET number = to_number, lease = '', kind = number_kind, raised_at = clock_timestamp()
    WHERE resource = guarded AND to_number >= 1 AND to_number < 9007199254740992
      AND number_kind IN ('grants', 'submissions');
    IF NOT FOUND THEN
        RAISE EXCEPTION 'PF004 invalid: resource %, number %, kind %: the resource must have a '
            'fence, the number be from 1 below 2^53, the kind grants or submissions',
            guarded, to_number, number_kind USING ERRCODE = 'PF004';
    END IF;
END
$palisade$;

REVOKE ALL ON FUNCTION palisade_guard(text, bigint, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION palisade_raise(text, bigint, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION palisade_reset(text, bigint, text) FROM PUBLIC;

DO $palisade$ BEGIN
    PERFORM set_config('search_path', current_setting('palisade.search_path'), false);
END $palisade$;
