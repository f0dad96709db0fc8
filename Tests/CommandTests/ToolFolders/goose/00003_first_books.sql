-- +goose Up
INSERT INTO book (id, title) VALUES (1, 'One'), (2, 'Two; three');

-- +goose Down
DELETE FROM book WHERE id IN (1, 2);
DELETE FROM log WHERE id IN (1, 2);
