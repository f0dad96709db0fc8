// BackupRepositoryTests
