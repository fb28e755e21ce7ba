-- A request is granted a lock once: its late duplicate is told how that grant ended.
CREATE INDEX lock_grants_by_request ON lock_grants (request_id, token);

-- Grants that ended long ago are forgotten; their pairs are unknown then, and refused all the same.
CREATE INDEX lock_grants_ended ON lock_grants (closed_at_ms) WHERE closed_at_ms IS NOT NULL;
