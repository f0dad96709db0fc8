import DrydockErrors
import Formats
import Testing

@testable import AppContainer

@Suite struct KeyValueStoreTests {
  /// As the system's daemon writes it: more than the value for each key, and more than the records on top.
  private let records: PropertyListDictionary = [
    "timestamp": 700_000_000, "version": 1,
    "values": [
      "theme": ["value": "dark", "timestamp": 1, "remotevalue": "dark"], "deleted": ["timestamp": 2],
      "sizes": ["value": [1, 2]],
    ],
  ]

  @Test func forms() {
    let plain = KeyValueStore(["theme": "dark", "values": ["a": 1], "n": 1])
    #expect(!plain.hasRecords && plain.values.count == 3)
    #expect(!KeyValueStore([:]).hasRecords && !KeyValueStore(["values": ["a": ["b": 1]]]).hasRecords)
    let store = KeyValueStore(records)
    #expect(store.hasRecords && store.values == ["theme": "dark", "sizes": [1, 2]])
    #expect(throws: DrydockError.self) { try store.requireWritable(["theme": "light"], "x") }
  }

  @Test func limits() throws {
    #expect(KeyValueStore(records).excesses.isEmpty)
    func text(_ count: Int) -> PropertyListValue { .string(String(repeating: "a", count: count)) }
    func keys(_ count: Int) -> PropertyListDictionary {
      PropertyListDictionary((0..<count).map { ("key\($0)", .boolean(true)) })
    }
    let within: [PropertyListDictionary] = [
      keys(1024), ["a": text(1 << 20)], [String(repeating: "é", count: 128): 1],
      // Keys do not count.
      [String(repeating: "k", count: 128): text(1 << 20)],
    ]
    for values in within { #expect(KeyValueStore(values).excesses.isEmpty) }
    let beyond: [(PropertyListDictionary, String)] = [
      (keys(1025), "1025 keys"), (["a": text(600_000), "b": text(600_000)], "1200000 bytes together"),
      (["a": .data([UInt8](repeating: 0, count: 1 << 20 + 1))], "1 value of more than 1048576 bytes"),
      ([String(repeating: "\u{1F6A2}", count: 65): 1], "1 key of more than 128 UTF-16 characters"),
    ]
    for (values, message) in beyond {
      #expect(KeyValueStore(values).excesses.contains { $0.contains(message) }, "\(message)")
      #expect(throws: DrydockError.self) { try KeyValueStore([:]).requireWritable(values, "x") }
      // What is beyond already can be made smaller.
      #expect(throws: Never.self) { try KeyValueStore(values).requireWritable([:], "x") }
    }
    #expect(throws: Never.self) { try KeyValueStore(keys(1030)).requireWritable(keys(1029), "x") }
  }

  @Test func liveValuesWin() {
    let (plain, kept) = KeyValueStore.merged(
      live: ["a": "live", "same": 1], archived: ["a": "old", "b": "old", "same": 1])
    #expect(plain == ["a": "live", "b": "old", "same": 1] && kept == 1)
    let live: PropertyListDictionary = [
      "values": ["theme": ["value": "light", "timestamp": 9]], "version": 2,
    ]
    let merged = KeyValueStore.merged(live: live, archived: records)
    #expect(merged.kept == 1)
    #expect(
      merged.root == [
        "timestamp": 700_000_000, "version": 2,
        "values": [
          "theme": ["value": "light", "timestamp": 9], "deleted": ["timestamp": 2],
          "sizes": ["value": [1, 2]],
        ],
      ])
    // Neither form can be made the other.
    #expect(KeyValueStore.merged(live: ["a": 1], archived: records).root == ["a": 1])
  }

  @Test func places() throws {
    var sandbox = try ContainerSandbox()
    sandbox.configuration.app = "com.example.notes"
    let ios = try sandbox.container()
    #expect(ios.suitePath("icloud") == "Library/SyncedPreferences/com.example.notes.plist")
    #expect(ios.isKeyValueStore("Library/SyncedPreferences/other.plist"))
    #expect(!ios.isKeyValueStore("Library/Preferences/com.example.notes.plist"))
    #expect(ios.suite(of: "Library/SyncedPreferences/com.example.notes.plist") == "icloud")
    sandbox.configuration.layout = .generic
    #expect(try sandbox.container().suitePath("icloud") == nil)
    sandbox.configuration.defaults["icloud"] = "cloud.plist"
    let generic = try sandbox.container()
    #expect(generic.isKeyValueStore("cloud.plist") && generic.isSettings("cloud.plist"))
  }
}
