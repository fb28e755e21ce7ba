-- The place for artefacts that the store belongs to, by the name that the place has for itself.

ALTER TABLE meta ADD COLUMN artefacts TEXT;
