import Drydock
import Foundation
import GRDB

enum NotesPlan: MigrationPlan {
  static let migrations: [PlannedMigration] = [
    .lightweight(
      version: 1, "rename_settings", description: "New names for settings; dark_mode becomes theme",
      [
        .step("defaults.rename", ["keys": ["user_name": "username", "user_email": "email"]]),
        .step(
          "defaults.convert",
          ["key": "dark_mode", "to": "theme", "map": [true: "dark", false: "light"]]),
      ],
      verify: [.defaults("theme", .oneOf(["dark", "light"]))]),

    .lightweight(
      version: 2, "move_database", description: "The database moves to Application Support",
      [
        .step(
          "files.move",
          ["from": "Documents/database.sqlite", "to": "Library/Application Support/database.sqlite"])
      ],
      verify: [.sql(database: "notes", "SELECT count(*) FROM task", .unchanged)]),

    .custom(version: 3, "tidy_tasks", description: "isDone becomes isCompleted, and titles lose spaces") {
      context in
      try context.write(database: "notes") { db in
        try db.alter(table: "task") { $0.rename(column: "isDone", to: "isCompleted") }
        for task in try Row.fetchAll(db, sql: "SELECT id, title FROM task") {
          let title: String = task["title"]
          try db.execute(
            sql: "UPDATE task SET title = ? WHERE id = ?",
            arguments: [title.trimmingCharacters(in: .whitespaces), task["id"]])
        }
      }
    } down: { context in
      try context.write(database: "notes") { db in
        try db.alter(table: "task") { $0.rename(column: "isCompleted", to: "isDone") }
      }
    },

    .custom(
      version: 4, "token_to_vault", description: "The session's token moves into the vault", needsVault: true
    ) { context in
      let settings = try context.settings(NotesSettings.self)
      if let token = settings.token {
        try context.vault.put(
          VaultItem(
            service: "com.example.notes", account: "auth", accessibility: .afterFirstUnlock,
            value: SecretBytes(Array(token.utf8))))
        settings.token = nil
      }
      settings.window.isFullScreen = settings.theme == .dark
    } down: { context in
      let settings = try context.settings(NotesSettings.self)
      let id = VaultItem.ID(service: "com.example.notes", account: "auth")
      if let item = try context.vault.item(id) {
        settings.token = item.value.withBytes { String(decoding: $0, as: UTF8.self) }
        try context.vault.remove(id)
      }
      settings.$window.remove()
    },
  ]
}

struct NotesSettings: SettingGroup {
  @Setting("theme") var theme = Theme.light
  @Setting("auth_token") var token: String?
  @Setting("window", as: .json) var window = Window()

  enum Theme: String, SettingValue {
    case dark, light
  }

  struct Window: Codable {
    var isFullScreen = false
  }
}
