-- +goose Up
-- +goose StatementBegin
CREATE TRIGGER book_added AFTER INSERT ON book
BEGIN
  INSERT INTO log (what, id) VALUES ('added', new.id);
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER book_added;
