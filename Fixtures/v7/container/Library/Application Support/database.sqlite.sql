CREATE TABLE account (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  balance INTEGER NOT NULL
);
CREATE TABLE project (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE task (
  id INTEGER PRIMARY KEY,
  title TEXT NOT NULL,
  isCompleted INTEGER NOT NULL DEFAULT 0,
  projectId INTEGER REFERENCES project (id) ON DELETE SET NULL,
  dueAt TEXT,
  notes TEXT
);
CREATE INDEX task_project ON task (projectId);
CREATE INDEX task_open ON task (dueAt) WHERE isCompleted = 0;

INSERT INTO account (id, name, balance) VALUES (1, 'Cash', 150000), (2, 'Savings', 50000);
INSERT INTO project (id, name) VALUES (1, 'Home'), (2, 'Grüße');
INSERT INTO task (id, title, isCompleted, projectId, dueAt, notes) VALUES
  (1, 'Buy milk 🥛', 1, 1, NULL, 'Oat, not cow'),
  (2, 'Call Grandma', 0, 2, '2026-01-15', NULL),
  (3, 'An ''old'' task', 0, NULL, NULL, '');
