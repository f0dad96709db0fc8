// ArchiveFileTests
