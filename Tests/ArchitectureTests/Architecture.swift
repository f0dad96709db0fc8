import Foundation

/// A package's manifest and the imports of its sources, compared with the agreed layering.
struct Architecture {
  /// The repository.
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  /// Without the tests.
  var targets: [PackageText.Target]
  /// By target.
  var imports: [String: [SourceImports.Import]] = [:]
  /// How many source files were read: a check that reads none proves nothing.
  private(set) var files = 0

  /// The package on disk.
  init() throws {
    targets = try Self.targets()
    for target in targets {
      let read = try SourceImports(below: Self.root.appendingPathComponent(target.path), root: Self.root)
      imports[target.name] = read.imports
      files += read.files
    }
  }

  /// The targets of the manifest, without the tests.
  static func targets(_ edited: (String) throws -> String = { $0 }) throws -> [PackageText.Target] {
    let manifest = try String(contentsOf: root.appendingPathComponent("Package.swift"), encoding: .utf8)
    return try PackageText(edited(manifest)).targets.filter { !$0.isTest }
  }

  /// Each import or dependency that is not allowed, one sentence each.
  var violations: [String] { wrongArrows + sharedLibraries + cycles }

  private var wrongArrows: [String] {
    var lines: [String] = []
    for target in targets {
      guard let allowed = Layering.mayImport(target.name) else {
        lines.append("Package.swift: \(target.name) is not in the layering; add it to Layering.swift")
        continue
      }
      let declarable = allowed.union(Layering.rebuiltWith[target.name] ?? [])
      for dependency in target.dependencies.subtracting(declarable).sorted() {
        lines.append("Package.swift: \(target.name) may not depend on \(dependency)")
      }
      for found in imports[target.name, default: []] where !Layering.platform.contains(found.module) {
        if !allowed.contains(found.module) {
          lines.append("\(found.place): \(target.name) may not import \(found.module)")
        } else if !target.dependencies.union(Layering.undeclared).contains(found.module) {
          lines.append("\(found.place): \(target.name) imports \(found.module) but does not declare it")
        }
      }
    }
    return lines
  }

  private var sharedLibraries: [String] {
    Layering.oneImporter.sorted().compactMap { library in
      let importers = targets.filter { target in
        target.dependencies.contains(library)
          || imports[target.name, default: []].contains { $0.module == library }
      }
      return importers.count == 1
        ? nil : "\(library) must have exactly one importer, not \(importers.map(\.name).sorted())"
    }
  }

  /// What is left when everything without arrows to the rest has been taken away, again and again.
  private var cycles: [String] {
    let names = Set(targets.map(\.name))
    var arrows: [String: Set<String>] = [:]
    for target in targets {
      let imported = Set(imports[target.name, default: []].map(\.module))
      arrows[target.name] = target.dependencies.union(imported).intersection(names)
    }
    while let free = arrows.first(where: { $0.value.isEmpty })?.key {
      arrows[free] = nil
      for name in arrows.keys { arrows[name]?.remove(free) }
    }
    return arrows.isEmpty ? [] : ["circular imports: \(arrows.keys.sorted())"]
  }
}
