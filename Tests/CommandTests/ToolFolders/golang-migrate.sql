CREATE TABLE book (
  id INTEGER PRIMARY KEY,
  title TEXT NOT NULL
);
ALTER TABLE book ADD COLUMN shelf TEXT NOT NULL DEFAULT 'none';
CREATE VIEW shelved AS SELECT title, shelf FROM book WHERE shelf <> 'none';
INSERT INTO book (id, title, shelf) VALUES (1, 'One', 'a');
