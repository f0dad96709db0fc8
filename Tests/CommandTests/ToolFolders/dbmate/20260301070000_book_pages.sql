-- migrate:up transaction:false
PRAGMA foreign_keys = OFF;
BEGIN;
ALTER TABLE book ADD COLUMN pages INTEGER;
COMMIT;

-- migrate:down
ALTER TABLE book DROP COLUMN pages;
