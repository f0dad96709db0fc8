/// What container to make.
struct ContainerOptions {
  static let oldPlace = "Documents/database.sqlite"
  static let newPlace = "Library/Application Support/database.sqlite"

  let directory: String
  let version: Int
  let tasks: Int
  let photos: Int
  let texts: Int
  let caches: Int
  let bulkMegabytes: Int
  let uuid: String
  let rollbackJournal: Bool
  let leaveWAL: Bool
  /// The session's token; versions before 5 keep it in the settings.
  let token: String?
  /// Whether version 2 is the one that was shipped first, which wrote the dark theme as a switch.
  let isAsShipped: Bool
  /// The directory of the app group, which is made; from version 7 on with what the widget reads.
  let group: String?

  init(_ arguments: inout Arguments) throws {
    directory = try arguments.next("a directory")
    version = try arguments.number("--version") ?? 0
    guard version <= 7 else { throw AppError("the app has the versions 0 to 7, not \(version)") }
    tasks = try arguments.number("--tasks") ?? 200
    photos = try arguments.number("--photos") ?? 12
    texts = try arguments.number("--texts") ?? 20
    caches = try arguments.number("--caches") ?? 8
    bulkMegabytes = try arguments.number("--bulk-mb") ?? 0
    uuid = try arguments.value("--uuid") ?? "6A1F0C52-3D7E-4B8A-9C11-0E5D2F7A4B90"
    rollbackJournal = arguments.flag("--rollback-journal")
    leaveWAL = arguments.flag("--leave-wal")
    let given = try arguments.value("--token")
    token = arguments.flag("--signed-out") || version > 4 ? nil : given ?? "made-up-token-of-ada-lovelace"
    isAsShipped = arguments.flag("--as-shipped")
    group = try arguments.value("--group")
    try arguments.finish()
  }

  /// Where this version keeps its database.
  var databasePlace: String { version >= 3 ? Self.newPlace : Self.oldPlace }
}
