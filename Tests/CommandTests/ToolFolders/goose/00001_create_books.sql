-- +goose Up
CREATE TABLE book (
  id INTEGER PRIMARY KEY,
  title TEXT NOT NULL
);
CREATE TABLE log (what TEXT, id INTEGER);

-- +goose Down
DROP TABLE log;
DROP TABLE book;
