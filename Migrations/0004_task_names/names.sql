-- migrate:up
ALTER TABLE task RENAME COLUMN isDone TO isCompleted;
ALTER TABLE task ADD COLUMN notes TEXT;

-- migrate:down
ALTER TABLE task DROP COLUMN notes;
ALTER TABLE task RENAME COLUMN isCompleted TO isDone;
