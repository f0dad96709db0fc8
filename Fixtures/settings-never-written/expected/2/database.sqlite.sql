BEGIN;
CREATE TABLE account (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  balance INTEGER NOT NULL
);
INSERT INTO "account" ("id", "name", "balance") VALUES (1, 'Cash', 150000);
INSERT INTO "account" ("id", "name", "balance") VALUES (2, 'Savings', 50000);
CREATE TABLE project (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
INSERT INTO "project" ("id", "name") VALUES (1, 'Home');
INSERT INTO "project" ("id", "name") VALUES (2, 'Grüße');
CREATE TABLE task (
  id INTEGER PRIMARY KEY,
  title TEXT NOT NULL,
  isDone INTEGER NOT NULL DEFAULT 0,
  projectId INTEGER REFERENCES project (id) ON DELETE SET NULL,
  dueAt TEXT
);
INSERT INTO "task" ("id", "title", "isDone", "projectId", "dueAt") VALUES (1, 'Buy milk 🥛', 1, 1, NULL);
INSERT INTO "task" ("id", "title", "isDone", "projectId", "dueAt") VALUES (2, 'Call Grandma', 0, 2, '2026-01-15');
INSERT INTO "task" ("id", "title", "isDone", "projectId", "dueAt") VALUES (3, 'An ''old'' task', 0, NULL, NULL);
CREATE INDEX task_open ON task (dueAt) WHERE isDone = 0;
CREATE INDEX task_project ON task (projectId);
COMMIT;
