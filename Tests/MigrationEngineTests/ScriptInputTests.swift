import AppStores
import Cryptography
import Foundation
import Testing

@testable import MigrationEngine

@Suite("Standard input of scripts") struct ScriptInputTests {
  private static let canary = "canary-secret-0123456789"

  private func run(
    _ script: String, stdin: String, keys: Bool = true, size: Int = 0,
    look: @escaping @Sendable (Lab) throws -> Void = { _ in }
  ) async throws -> (notes: String, error: String) {
    try await onThread {
      try Lab.with { lab in
        try lab.set(["a": 1])
        let value = Self.canary + String(repeating: "x", count: size)
        try lab.put([
          VaultItem(service: "chosen", account: "a", value: SecretBytes(Array(value.utf8))),
          VaultItem(service: "other", account: "b", value: SecretBytes(Array("not-for-scripts".utf8))),
        ])
        try lab.baseline(0)
        if !keys { lab.deviceKeys = nil }
        try lab.migration("0001_a/script.sh", "#!/bin/sh\nset -e\n" + script)
        try lab.migration(
          "0001_a/migration.yaml", step: "script: {run: script.sh, stdin: \(stdin), timeout: 60}")
        var notes = ""
        let error = failure {
          notes = try lab.migrate().migrations.flatMap(\.notes).joined(separator: "\n")
        }
        try look(lab)
        return (notes, error.text)
      }
    }
  }

  @Test("The chosen items arrive, and no others")
  func chosen() async throws {
    let result = try await run(
      "cat > Documents/in.json\n", stdin: "{vault: {service: chosen}}"
    ) { lab in
      let bytes = try Data(contentsOf: URL(fileURLWithPath: lab.path("Documents/in.json")))
      let document = try #require(JSONSerialization.jsonObject(with: bytes) as? [String: Any])
      let items = try #require(document["items"] as? [[String: Any]])
      #expect(document["format"] as? Int == 1 && items.count == 1)
      #expect(items[0]["service"] as? String == "chosen" && items[0]["account"] as? String == "a")
      #expect(items[0]["value"] as? String == Data(Self.canary.utf8).base64EncodedString())
    }
    #expect(result.error == "no error", "\(result)")
  }

  @Test("They are in no argument, variable or file, and what the script prints of them is hidden")
  func hidden() async throws {
    let result = try await run(
      """
      env; tr '\\0' ' ' < /proc/$$/cmdline; find "$TMPDIR" "$DRYDOCK_MIGRATION" -type f -exec cat {} +
      document=$(cat); echo "$document"; echo "$document" | sed -n 's/.*"value": "\\(.*\\)".*/\\1/p' | base64 -d
      exit 3
      """, stdin: "{vault: [{service: chosen}]}")
    #expect(result.error.contains("ended with exit code 3"), "\(result)")
    #expect(result.error.contains("(secret, 24 characters"), "\(result)")
    for text in [Self.canary, Data(Self.canary.utf8).base64EncodedString(), "not-for-scripts"] {
      #expect(!result.error.contains(text) && !result.notes.contains(text), "\(result)")
    }
  }

  @Test(
    "A script that does not read them, or only a part, ends as it likes",
    arguments: ["true", "head -c 9 > /dev/null", "exec <&-; sleep 0"])
  func unread(_ script: String) async throws {
    let result = try await run(script + "\n", stdin: "{vault: {service: chosen}}", size: 3 << 20)
    #expect(result.error == "no error", "\(result.error.prefix(500))")
  }

  @Test("A large document arrives whole")
  func large() async throws {
    let size = 3 << 20
    let result = try await run("wc -c\n", stdin: "{vault: {service-prefix: chosen}}", size: size)
    let count = result.notes.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }.last ?? 0
    #expect(count > (size + Self.canary.count) * 4 / 3, "\(result.error.prefix(500)) \(result.notes)")
  }

  @Test("What is missing or wrong")
  func refusals() async throws {
    let none = try await run("cat\n", stdin: "{vault: {service: nobody, if-missing: fail}}")
    #expect(none.error.contains("no vault item has service `nobody`"))
    let empty = try await run("cat > Documents/in.json\n", stdin: "{vault: {service: nobody}}")
    #expect(
      empty.error == "no error" && empty.notes.contains("no vault item has service `nobody`: skipped"),
      "\(empty)")
    let locked = try await run("cat\n", stdin: "{vault: {service: chosen}}", keys: false)
    #expect(locked.error.contains("script of the migration 0001_a needs the device key"), "\(locked)")
    for (stdin, words) in [
      ("{vault: []}", "is an empty list"), ("{}", "needs the key `vault`"),
      ("{vault: {}}", "does not say which items"),
      ("{settings: a}", "unknown key `settings` in `stdin`"), ("all", "is a mapping"),
    ] {
      let result = try await run("true\n", stdin: stdin)
      #expect(result.error.contains(words), "\(result)")
    }
  }
}
