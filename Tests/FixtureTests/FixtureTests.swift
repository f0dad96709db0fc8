// FixtureTests
