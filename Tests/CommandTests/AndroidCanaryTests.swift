import Foundation
import TestSupport
import Testing

@Suite("Canaries in Android's settings") struct AndroidCanaryTests {
  private static let own = "shared_prefs/com.example.notes_preferences.xml"
  private static let store = "files/datastore/account.preferences_pb"

  /// SharedPreferences with secrets under all kinds of names and in all types that can have one.
  private func preferences(_ place: String) -> String {
    let secret = Canary.plain.value(place)
    return """
      <?xml version='1.0' encoding='utf-8' standalone='yes' ?>
      <map>
          <string name="auth_token">\(secret)</string>
          <int name="pin" value="\(Canary.pin)" />
          <long name="payment" value="\(Canary.card)" />
          <set name="passwords">
              <string>\(secret)</string>
          </set>
          <string name="answer">{"access_token": "\(secret)"}</string>
          <list name="secrets"><string>\(secret)</string></list>
          <string name="theme">\(place)</string>
      </map>

      """
  }

  private func dataStore(_ place: String) -> [UInt8] {
    func field(_ number: UInt8, _ bytes: [UInt8]) -> [UInt8] {
      [number << 3 | 2, UInt8(bytes.count)] + bytes
    }
    let entries = [("password", Canary.plain.value(place)), ("theme", place)].map { key, text in
      field(1, field(1, Array(key.utf8)) + field(2, field(5, Array(text.utf8))))
    }
    return entries.flatMap(\.self)
  }

  private func write(_ sandbox: Sandbox, _ container: String) throws {
    try sandbox.write("\(container)/\(Self.own)", preferences(container))
    try sandbox.write("\(container)/\(Self.store)", bytes: dataStore(container))
  }

  @Test func `No output has a secret of SharedPreferences or of a DataStore`() throws {
    try Sandbox.with { sandbox in
      try sandbox.write(
        "drydock.yaml",
        "app: com.example.notes\nlayout: android\nmigrations: Own\nversion-markers: [{defaults: schema, absent: 0}]\n"
      )
      for container in ["one", "two"] {
        try write(sandbox, container)
        try sandbox.write("\(container)/shared_prefs/cut.xml", String(preferences(container).prefix(130)))
      }
      func step(_ text: String) throws {
        try sandbox.write("Own/0001_a.yaml", "steps:\n  - defaults.\(text)\n")
      }
      let needles = Canary.needles(.plain)
      func quiet(_ arguments: [String], code: Int32 = 0) throws {
        for form in [[], ["--json"]] {
          let run = try sandbox.drydock(arguments + form).expect(exit: code)
          #expect(needles.found(in: Data(run.outputBytes)) == [], "\(arguments) \(run)")
          #expect(needles.found(in: Data(run.errorBytes)) == [], "\(arguments) \(run)")
        }
      }
      try quiet(["inspect", "one"])
      try quiet(["diff", "one", "two"])
      for text in [
        "rename: {keys: {auth_token: a, passwords: d, answer: e}}",
        "move: {to: {suite: account}, keys: [auth_token, pin, payment, passwords, answer]}",
        "move: {from: {suite: account}, all: true, if-exists: replace}",
        "copy: {to: {file: files/copy.plist}, keys: {auth_token: a, passwords: c}}",
      ] {
        try step(text)
        try quiet(["migrate", "one", "--dry-run"])
      }
      for text in [
        "convert: {key: auth_token, type: int}", "convert: {key: pin, map: {1: 2}}",
        "move: {to: {suite: account}, all: true}", "copy: {to: {file: files/copy.plist}, all: true}",
        "set: {suite: account, values: {password: x}}",
      ] {
        try step(text)
        try quiet(["migrate", "one", "--dry-run"], code: 1)
      }
      try quiet(["audit", "one"])
      try quiet(["snapshot", "one", "-r", "Backups"])
      try quiet(["diff", "latest", "two", "-r", "Backups"])
    }
  }

  @Test func `A captured fixture has none either, and its DataStore is a text`() throws {
    try Sandbox.with { sandbox in
      try sandbox.write("drydock.yaml", "app: com.example.notes\nlayout: android\n")
      try write(sandbox, "one")
      try sandbox.succeed("fixture capture one caught --fixtures Fixtures --at 0")
      let fixture = try sandbox.tree("Fixtures")
      for path in fixture.paths {
        #expect(Canary.needles(.plain).found(in: fixture[path]?.content ?? Data()) == [], "\(path)")
      }
      #expect(fixture.paths.contains("caught/container/\(Self.store).yaml"), "\(fixture.paths)")
    }
  }
}
