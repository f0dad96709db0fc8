import AppContainer
import AppStores
import ContainerTransaction
import FileSystem
import Formats

/// What a container holds that an app may have to declare.
struct ContainerFacts {
  /// A kind of personal data, and where its values were seen.
  struct Personal {
    var kind: PersonalColumn.Kind
    var path: ContainerPath
    var item: String
    var count: Int
  }

  /// Settings files with settings of the app.
  var settings: [ContainerPath] = []
  var personal: [Personal] = []
  var keychainGroups: [String] = []
  /// Files with secrets that everybody can read.
  var readableSecrets: [ContainerPath] = []

  mutating func note(setting key: String, _ value: PropertyListValue, in path: ContainerPath) {
    if settings.last != path { settings.append(path) }
    var column = PersonalColumn(key)
    if case .string(let text) = value { column.note(text) }
    if let kind = column.kind, column.matches > 0, kind != .latitude, kind != .longitude {
      personal.append(Personal(kind: kind, path: path, item: "`\(key)`", count: 1))
    }
  }

  /// Notes the columns of a table whose values are, nearly all, what their names say.
  mutating func note(_ columns: [PersonalColumn], in table: String, of path: ContainerPath, rows: Int) {
    let sure = columns.filter { $0.kind != nil && $0.matches > 0 && $0.matches * 10 >= $0.values * 9 }
    for column in sure where column.kind != .latitude && column.kind != .longitude {
      guard let kind = column.kind else { continue }
      personal.append(
        Personal(kind: kind, path: path, item: "\(table).\(column.name)", count: column.matches))
    }
    // A place may be a shop's: only a table of the user's movements shows where the user was.
    let words = Set(SecretName.words(table))
    guard !words.isDisjoint(with: Self.movements), let latitude = sure.first(where: { $0.kind == .latitude }),
      sure.contains(where: { $0.kind == .longitude })
    else { return }
    personal.append(
      Personal(kind: .latitude, path: path, item: "\(table).\(latitude.name)", count: latitude.matches))
  }

  private static let movements: Set<String> = [
    "location", "track", "trackpoint", "visit", "checkin", "trip", "route", "workout", "run", "ride",
  ]
}

/// Whether the values of a column or setting are personal data, by its name and their form. Both must agree.
struct PersonalColumn {
  enum Kind { case email, phone, name, latitude, longitude }

  let name: String
  let kind: Kind?
  private(set) var values = 0, matches = 0

  init(_ name: String) {
    self.name = name
    let words = SecretName.words(name)
    let joined = words.joined()
    let isAbout = words.contains {
      ["verified", "count", "template", "subject", "id", "enabled"].contains($0)
    }
    switch joined {
    case _ where isAbout: kind = nil
    case "email", "mail", "emailaddress", "useremail", "accountemail", "zemail", "contactemail": kind = .email
    case "phone", "phonenumber", "mobile", "mobilenumber", "telephone", "zphone", "zphonenumber", "userphone":
      kind = .phone
    case "firstname", "lastname", "givenname", "familyname", "fullname", "surname", "zfirstname", "zlastname":
      kind = .name
    case "latitude", "lat", "zlatitude": kind = .latitude
    case "longitude", "lon", "lng", "long", "zlongitude": kind = .longitude
    default: kind = joined.hasSuffix("emailaddress") ? .email : nil
    }
  }

  mutating func note(_ text: String) {
    guard let kind, !text.isEmpty else { return }
    values += 1
    switch kind {
    case .email:
      let parts = text.split(separator: "@", omittingEmptySubsequences: false)
      if parts.count == 2, !parts[0].isEmpty, parts[1].contains("."), !text.contains(" ") { matches += 1 }
    case .phone:
      let digits = text.count(where: \.isNumber)
      if (7...15).contains(digits), text.allSatisfy({ $0.isNumber || "+-() ./".contains($0) }) {
        matches += 1
      }
    case .name: if text.count <= 60, text.contains(where: \.isLetter) { matches += 1 }
    case .latitude, .longitude: if let number = Double(text) { note(number, kind) }
    }
  }

  mutating func note(_ number: Int64) {
    guard kind == .phone else { return }
    note(String(number))
  }

  mutating func note(_ number: Double) {
    guard let kind, kind == .latitude || kind == .longitude else { return }
    values += 1
    note(number, kind)
  }

  /// More than three digits after the point are a house, not a town.
  private mutating func note(_ number: Double, _ kind: Kind) {
    let most: Double = kind == .latitude ? 90 : 180
    if number.magnitude <= most, (number * 1000).rounded() != number * 1000 { matches += 1 }
  }
}

extension StagedContainer {
  /// The settings whose names and values look like personal data, by their keys in backticks.
  package func personalSettings() throws -> [String] {
    var facts = ContainerFacts()
    for path in try descendants(of: .root) where container.isSettings(path) {
      for (key, value) in (try? defaults(path))??.root.sorted() ?? [] {
        facts.note(setting: key, value, in: path)
      }
    }
    return facts.personal.map(\.item)
  }
}
