-- A Core Data store: its schema belongs to the app's model, and Z_METADATA says which model that is.
CREATE TABLE ZENTRY (
  Z_PK INTEGER PRIMARY KEY,
  Z_ENT INTEGER,
  Z_OPT INTEGER,
  ZWRITTENAT TIMESTAMP,
  ZMOOD VARCHAR,
  ZTEXT VARCHAR
);
CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);
CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);
CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB);

INSERT INTO ZENTRY (Z_PK, Z_ENT, Z_OPT, ZWRITTENAT, ZMOOD, ZTEXT) VALUES
  (1, 1, 1, 788918400, 'ok', 'The dock is dry.'),
  (2, 1, 3, 789004800, 'great', 'She floats!'),
  (3, 1, 2, 789091200, 'ok', 'Quiet water. (ok)');
INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (1, 'Entry', 0, 3);
INSERT INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES
  (1, '00000000-0000-4000-8000-0000000000cd', CAST('<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict>
  <key>NSPersistenceFrameworkVersion</key><integer>1414</integer>
  <key>NSStoreModelVersionHashes</key><dict><key>Entry</key><data>bWFkZS11cC1oYXNoLW9mLXRoZS1lbnRpdHktRW50cnk=</data></dict>
  <key>NSStoreModelVersionIdentifiers</key><array><string>Journal</string></array>
  <key>NSStoreType</key><string>SQLite</string>
</dict></plist>' AS BLOB));
