CREATE TABLE author (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
);
CREATE TABLE book (
  id INTEGER PRIMARY KEY,
  author INTEGER NOT NULL REFERENCES author (id),
  title TEXT NOT NULL -- as on the cover; with its article
);
CREATE INDEX book_author ON book (author);
INSERT INTO author (id, name) VALUES (1, 'Ada; "the first"'), (2, 'O''Brien');
INSERT INTO book (id, author, title) VALUES (1, 1, 'Notes -- with a dash');
ALTER TABLE book ADD COLUMN pages INTEGER;
