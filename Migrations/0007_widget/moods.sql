-- Rows only: the schema belongs to the app's Core Data model, which stays the same. Z_OPT counts the saves of an object, by
-- which Core Data notices that somebody else has changed it.
-- migrate:up
UPDATE ZENTRY SET ZMOOD = 'content', Z_OPT = Z_OPT + 1 WHERE ZMOOD = 'ok';

-- migrate:down
-- Version 6 had no such mood: all of these were `ok`.
UPDATE ZENTRY SET ZMOOD = 'ok', Z_OPT = Z_OPT - 1 WHERE ZMOOD = 'content';
