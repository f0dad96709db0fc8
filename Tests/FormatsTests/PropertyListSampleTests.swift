import Formats
import Foundation
import TestSupport
import Testing

/// The files in `PropertyLists` that other programs wrote (`make_samples.py`) are read, and written back value for value
/// and in their form.
@Suite struct PropertyListSampleTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("PropertyLists")

  static func sample(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: folder.appendingPathComponent(name)))
  }

  static let texts: PropertyListDictionary = [
    "title": "Zoë \"quoted\" \\ back\nline\ttab", "emoji": "\u{1F6A2} 日本", "empty": "",
    "word": "plain_1", "with-dash.and space": "a b", "path": "a/b:c$d", "true-text": "YES",
    "blob": .data([0, 1, 2, 255]), "nothing": .data([]), "list": ["a", "", ["x"], ["k": "v"]], "none": [],
    "dict": ["inner": ["deep": "1"], "a": [:]],
  ]

  static var typed: PropertyListDictionary {
    texts.merging([
      "count": 42, "negative": .integer(.min), "ratio": 0.1, "on": true, "off": false,
      "when": .date(Date(timeIntervalSince1970: 1_795_169_700)),
    ]) { $1 }
  }

  static let openStep = ["gnustep-openstep.plist", "openstep-plist.plist", "openstep-plist-utf8.plist"]
  static let all =
    openStep + [
      "gnustep-typed.plist", "gnustep-binary.plist", "gnustep-xml.plist", "libplist-binary.plist",
      "libplist-xml.plist", "plistlib-binary.plist", "plistlib-utf8.plist", "plistlib-utf8-mark.plist",
      "plistlib-utf16le-mark.plist", "plistlib-utf16be-mark.plist", "plistlib-utf16le.plist",
      "plistlib-utf16be.plist",
    ]

  @Test(arguments: all)
  func readAndWrittenBack(_ name: String) throws {
    let bytes = try Self.sample(name)
    let file = try PropertyListFile(bytes: bytes)
    var expected = Self.openStep.contains(name) ? Self.texts : Self.typed
    // GNUstep writes characters beyond the basic plane in XML as its own escapes, which are text to all other readers.
    if name == "gnustep-xml.plist" { expected["emoji"] = "\\UD83D\\UDEA2 日本" }
    #expect(file.root == expected)
    let written = try file.encoded()
    #expect(try PropertyListFile(bytes: written) == file)
    // The encoding and its mark are those of the sample.
    #expect(TextEncodingStart(written) == TextEncodingStart(bytes))
  }

  /// What the first bytes show: a byte-order mark, or zeros beside ASCII.
  private struct TextEncodingStart: Equatable {
    let bytes: [UInt8]

    init(_ file: [UInt8]) {
      let isMarked = [[0xEF, 0xBB, 0xBF], [0xFF, 0xFE], [0xFE, 0xFF]].contains { file.starts(with: $0) }
      bytes = isMarked ? Array(file.prefix(2)) : file.prefix(2).map { $0 == 0 ? 0 : 1 }
    }
  }

  @Test func stringsFiles() throws {
    let utf16 = try PropertyListFile(bytes: Self.sample("strings-utf16le.strings"))
    let values: PropertyListDictionary = ["Done": "Terminé", "emoji": "\u{1F6A2}", "a \"b\"": "c\nd"]
    #expect(utf16.root == values && utf16.format == .openStep)
    #expect(
      try utf16.encoded()
        == [0xFF, 0xFE]
        + Self.utf16("\"Done\" = \"Terminé\";\n\"a \\\"b\\\"\" = \"c\\nd\";\n\"emoji\" = \"\u{1F6A2}\";\n"))
    let utf8 = try PropertyListFile(bytes: Self.sample("strings-utf8.strings"))
    #expect(utf8.root == values.merging(["bare": "word", "alone": "alone"]) { $1 })
  }

  private static func utf16(_ text: String) -> [UInt8] {
    text.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
  }

  /// GNUstep reads what is written in its forms and in OpenStep's.
  @Test(arguments: ["gnustep-openstep.plist", "gnustep-typed.plist", "plistlib-binary.plist"])
  func gnustepReadsWhatIsWritten(_ name: String) throws {
    let file = try PropertyListFile(bytes: Self.sample(name))
    let directory = try TemporaryDirectory()
    try Data(file.encoded()).write(to: URL(fileURLWithPath: directory("a.plist")))
    let result = try Command.succeed(
      Tools.system("plser"), [directory("a.plist"), "-Format", "NSPropertyListGNUstepFormat"],
      environment: ["HOME": directory.path, "LC_ALL": "C.UTF-8"])
    #expect(try PropertyListFile(bytes: result.outputBytes).root == file.root)
  }

  /// UTF-16 without a mark is not recognized by it.
  @Test(arguments: all.filter { $0.hasPrefix("plistlib") && !$0.contains(#/utf16..\./#) })
  func pythonReadsWhatIsWritten(_ name: String) throws {
    let file = try PropertyListFile(bytes: Self.sample(name))
    let script =
      "import plistlib, sys; sys.stdout.buffer.write("
      + "plistlib.dumps(plistlib.loads(sys.stdin.buffer.read()), fmt=plistlib.FMT_BINARY))"
    let result = try Command.succeed(Tools.system("python3"), ["-c", script], input: file.encoded())
    #expect(try PropertyListFile(bytes: result.outputBytes).root == file.root)
  }

  @Test func libplistReadsWhatIsWritten() throws {
    for format in [PropertyListFile.Format.binary, .xml] {
      let directory = try TemporaryDirectory()
      let file = PropertyListFile(format: format, root: Self.typed)
      try Data(file.encoded()).write(to: URL(fileURLWithPath: directory("a.plist")))
      let other = format == .binary ? "xml" : "bin"
      try Command.succeed(
        Tools.system("plistutil"), ["-i", directory("a.plist"), "-o", directory("b.plist"), "-f", other])
      let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: directory("b.plist"))))
      #expect(try PropertyListFile(bytes: bytes).root == file.root)
    }
  }
}
