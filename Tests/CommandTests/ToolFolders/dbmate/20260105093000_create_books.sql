-- migrate:up
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

-- migrate:down
DROP TABLE book;
DROP TABLE author;
