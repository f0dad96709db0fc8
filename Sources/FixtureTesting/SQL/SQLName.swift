import ContainerDiff

/// A name in SQL.
func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }
