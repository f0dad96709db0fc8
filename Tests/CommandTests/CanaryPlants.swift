import Foundation

struct CanaryPlants {
  let sandbox: Sandbox
  let container: String

  /// Plants them; `place` tells containers apart, so that a comparison has both sides to show.
  func plant(_ place: String) throws {
    try settings(place)
    try database(place)
    try files(place)
  }

  private static let other = "Library/Preferences/com.example.other.plist"

  private func settings(_ place: String) throws {
    let secret = Canary.plain.value(place)
    let blob = try PropertyListSerialization.data(
      fromPropertyList: ["authToken": secret], format: .binary, options: 0)
    let pairs: [String: Any] = [
      "auth_token": Canary.moved.value(place), "password": secret, "api-key": secret, "pin": Canary.pin,
      "payment": Canary.card, "userSession": Data(secret.utf8), "state": blob,
      "credentials": ["user": secret, "inner": ["x": [secret, 1]]],
      "cookies": [["Name": "sid", "Value": secret, "Domain": "example.com"]],
      "lastAnswer": #"{"theme": "dark", "access_token": "\#(secret)", "n": [{"pin": "\#(secret)"}]}"#,
      "cutAnswer": #"{"theme": "dark", "access_token": "\#(secret)"#,
      "header": "Bearer \(secret)", "endpoint": "https://ada:\(secret)@example.com/?access_token=\(secret)",
      "jwt-like": "ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.\(secret)", "key": "gh" + "p_\(secret)\(secret)",
      "pem": "-----BEGIN " + "PRIVATE KEY-----\n\(secret)\n-----END PRIVATE KEY-----",
      "gh" + "p_\(secret)\(secret)": "a key that is a secret itself",
    ]
    try change(Sandbox.settings) { $0.merge(pairs) { $1 } }
    try change(Self.other, .xml) { $0 = pairs.filter { $0.key != "auth_token" } }
  }

  /// Changes a settings file as the app does.
  func change(
    _ path: String, _ format: PropertyListSerialization.PropertyListFormat = .binary,
    _ body: (inout [String: Any]) -> Void
  ) throws {
    let file = "\(container)/\(path)"
    var values: [String: Any] = [:]
    if sandbox.exists(file) {
      let object = try PropertyListSerialization.propertyList(from: Data(sandbox.read(file)), format: nil)
      values = object as? [String: Any] ?? [:]
    }
    body(&values)
    let data = try PropertyListSerialization.data(fromPropertyList: values, format: format, options: 0)
    try sandbox.write(file, bytes: Array(data))
  }

  private func database(_ place: String) throws {
    let secret = Canary.plain.value(place)
    let hex = Data("bplist00 \(secret)".utf8).map { String(format: "%02x", $0) }.joined()
    let database =
      sandbox.exists("\(container)/\(Sandbox.newDatabase)") ? Sandbox.newDatabase : Sandbox.oldDatabase
    try sandbox.sqlite(
      "\(container)/\(database)",
      """
      CREATE TABLE IF NOT EXISTS login(id INTEGER PRIMARY KEY, user TEXT, password TEXT CHECK (password <> 'x'), pin);
      CREATE TABLE IF NOT EXISTS setting(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS tokens(token TEXT PRIMARY KEY, value TEXT, data BLOB);
      CREATE TABLE IF NOT EXISTS Z_METADATA(Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR, Z_PLIST BLOB);
      DROP TABLE IF EXISTS made_\(place);
      CREATE TABLE made_\(place)(id, token TEXT DEFAULT '\(secret)' /* password: \(secret) */);
      REPLACE INTO login VALUES (1, 'ada', '\(secret)', \(Canary.pin)), (2, 'Bearer \(secret)', 'y', 1);
      REPLACE INTO setting VALUES ('auth_token', '\(secret)'), ('api-key', x'\(hex)');
      REPLACE INTO tokens VALUES ('\(secret)', '\(secret)', x'\(hex)');
      REPLACE INTO Z_METADATA VALUES (1, 'u', x'\(hex)');
      UPDATE task SET title = 'see https://ada:\(secret)@example.com' WHERE id = 1;
      UPDATE task SET title = '{"token": "\(secret)", "x": "' || printf('%.*c', 5000, 'x') || '"}' WHERE id = 2;
      """)
  }

  private func files(_ place: String) throws {
    let secret = Canary.plain.value(place)
    try sandbox.write("\(container)/Documents/secret.txt", "password: \(secret)\n")
    try sandbox.write(
      "\(container)/Documents/state.json", #"{"version": "\#(secret)", "token": "\#(secret)"}"#)
  }
}
