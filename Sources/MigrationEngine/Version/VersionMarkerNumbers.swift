import AppContainer

/// Translates between the app's own version numbers and the numbers of migrations.
///
/// Without `at:` they are the same. `at: {4: 2, 6: 3}` says that after migration 4 the app's number is 2 and
/// after 6 it is 3: an app's number stands for the migration it is named with and those after it, up to the next
/// one named. So 2 means "4 or 5". 0 means "before the first migration that is named". A number that is not named means
/// nothing, which is an error, not a guess. `at: {0: 3}` says that the app's number was 3 before the first migration.
struct VersionMarkerNumbers {
  private let pairs: [(migration: Int, app: Int)]

  init(_ at: [Int: Int]) {
    pairs = at.map { (migration: $0.key, app: $0.value) }.sorted { $0.migration < $1.migration }
  }

  /// The migrations that an app's number stands for; nil when it means nothing.
  func migrations(for app: Int) -> ClosedRange<Int>? {
    if pairs.isEmpty { return app >= 0 ? app...app : nil }
    if let index = pairs.firstIndex(where: { $0.app == app }) {
      let last = index + 1 < pairs.count ? pairs[index + 1].migration - 1 : Int.max
      return pairs[index].migration...max(pairs[index].migration, last)
    }
    guard app == 0, let first = pairs.first, first.migration > 0 else { return nil }
    return 0...first.migration - 1
  }

  /// The app's number after a migration; nil when it has none.
  func app(for migration: Int) -> Int? {
    if pairs.isEmpty { return migration }
    return pairs.last { $0.migration <= migration }?.app
  }
}
