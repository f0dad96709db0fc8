import Foundation
import Testing

@Suite("CONTRIBUTING.md shows the modules, and four walks through them, as they are")
struct ContributingTests {

  private func text(of path: String) throws -> String {
    try String(contentsOf: Architecture.root.appendingPathComponent(path), encoding: .utf8)
  }

  @Test("The table of modules is that of Package.swift; `Scripts/docs modules` writes it")
  func modules() throws {
    let picture = try PackageText(text(of: "Package.swift")).picture()
    let lines = try text(of: "CONTRIBUTING.md").split(separator: "\n", omittingEmptySubsequences: false)
    let head = try #require(lines.firstIndex(of: "| Layer | Module | Stands on | What belongs there |"))
    // The line below the head belongs to it.
    let rows = lines[(head + 2)...].prefix { $0.hasPrefix("|") }.map { line -> [String] in
      line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
        .map { $0.trimmingCharacters(in: .whitespaces) }
    }
    #expect(rows.map { Array($0.prefix(3)) } == picture)
    let unexplained = rows.filter { $0.count != 4 || $0.last == "" }
    #expect(unexplained == [], "say in one line what belongs into the module")
  }

  private struct Hop {
    let number: Int
    let path: String, function: String
  }

  private struct Walk {
    /// The number of hops that the title states.
    let stated: Int
    var hops: [Hop] = []
  }

  @Test(
    "Each hop of the four walks is a function in the file that it names, and the titles state their number")
  func walks() throws {
    var walks: [Walk] = []
    for line in try text(of: "CONTRIBUTING.md").split(separator: "\n") {
      if let title = line.firstMatch(of: /^### .*: (\d+) hops/) {
        walks.append(Walk(stated: Int(title.1) ?? 0))
      } else if !walks.isEmpty, let hop = line.firstMatch(of: /^(\d+)\. `([\w\/]+\.\w+) (\w+)`/) {
        walks[walks.count - 1].hops.append(
          Hop(number: Int(hop.1) ?? 0, path: String(hop.2), function: String(hop.3)))
      }
    }
    #expect(walks.count == 4)
    for walk in walks {
      #expect(walk.hops.map(\.number) == (0..<walk.stated).map { $0 + 1 })
      for hop in walk.hops {
        let source = try text(of: "Sources/\(hop.path)")
        let start = (hop.path.hasSuffix(".swift") ? "func " : " ") + hop.function
        #expect(
          source.contains("\(start)(") || source.contains("\(start)<"),
          "\(hop.path) has no function \(hop.function)")
      }
    }
  }
}

extension PackageText {
  /// A row for each module, from the top downwards: its layer, its name, and the modules directly below it.
  ///
  /// - Throws: ``Unreadable`` when a module is declared before one that it depends on.
  fileprivate func picture() throws -> [[String]] {
    let modules = targets.filter { $0.path.hasPrefix("Sources/") }
    let names = Set(modules.map(\.name))
    var below: [String: Set<String>] = [:]
    var layers: [String: Int] = [:]
    var rows: [(layer: Int, name: String, standsOn: [String])] = []
    for module in modules {
      let own = module.dependencies.intersection(names)
      var covered: Set<String> = []
      var layer = 1
      for name in own {
        guard let lower = layers[name], let all = below[name] else {
          throw Unreadable("\(module.name) is declared before \(name), which it depends on")
        }
        covered.formUnion(all)
        layer = max(layer, lower + 1)
      }
      below[module.name] = own.union(covered)
      layers[module.name] = layer
      rows.append((layer, module.name, own.subtracting(covered).sorted()))
    }
    return rows.sorted { ($1.layer, $0.name) < ($0.layer, $1.name) }.map { row in
      ["\(row.layer)", "`\(row.name)`", row.standsOn.map { "`\($0)`" }.joined(separator: ", ")]
    }
  }
}
