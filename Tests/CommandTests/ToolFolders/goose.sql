CREATE TABLE book (
  id INTEGER PRIMARY KEY,
  title TEXT NOT NULL
);
CREATE TABLE log (what TEXT, id INTEGER);
CREATE TRIGGER book_added AFTER INSERT ON book
BEGIN
  INSERT INTO log (what, id) VALUES ('added', new.id);
END;
INSERT INTO book (id, title) VALUES (1, 'One'), (2, 'Two; three');
