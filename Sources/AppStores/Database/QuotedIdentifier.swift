/// The name of a table or column in SQL. GRDB's `quotedDatabaseIdentifier` leaves quotes in the name as they are, and names of
/// an app's database may be hostile.
package func quotedIdentifier(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }
