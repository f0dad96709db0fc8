-- Room cannot give the empty texts a value.
DROP VIEW titles;
DROP TABLE tag;
CREATE TABLE `_new_note` (`id` INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, `title` TEXT NOT NULL,
  `text` TEXT NOT NULL DEFAULT '', `pinned` INTEGER NOT NULL DEFAULT 0, `notebook_id` TEXT, `score` REAL,
  FOREIGN KEY(`notebook_id`) REFERENCES `notebook`(`id`) ON UPDATE NO ACTION ON DELETE SET NULL);
INSERT INTO `_new_note` (`id`, `title`, `text`, `pinned`, `notebook_id`)
  SELECT `id`, `title`, coalesce(`text`, ''), `pinned`, `notebook_id` FROM `note`;
DROP TABLE `note`;
ALTER TABLE `_new_note` RENAME TO `note`;
CREATE INDEX `index_note_title` ON `note` (`title`);
CREATE INDEX `index_note_notebook_id` ON `note` (`notebook_id`);
