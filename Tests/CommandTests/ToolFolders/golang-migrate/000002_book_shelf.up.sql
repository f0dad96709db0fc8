BEGIN;
ALTER TABLE book ADD COLUMN shelf TEXT NOT NULL DEFAULT 'none';
CREATE VIEW shelved AS SELECT title, shelf FROM book WHERE shelf <> 'none';
COMMIT;
