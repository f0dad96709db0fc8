// MigrationEngineTests
