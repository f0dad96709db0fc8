-- migrate:up
INSERT INTO author (id, name) VALUES (1, 'Ada; "the first"'), (2, 'O''Brien');
INSERT INTO book (id, author, title) VALUES (1, 1, 'Notes -- with a dash');

-- migrate:down
DELETE FROM book WHERE id = 1;
DELETE FROM author WHERE id IN (1, 2);
