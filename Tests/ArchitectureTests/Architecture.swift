import Foundation

/// The package as it is on disk, compared with the agreed layering.
struct Architecture {
  private let package: PackageText
  private let imports: [String: [SourceImports.Import]]
  /// How many source files were read: a check that reads none proves nothing.
  let files: Int

  init(root: URL) throws {
    let manifest = root.appendingPathComponent("Package.swift")
    package = try PackageText(String(contentsOf: manifest, encoding: .utf8))
    var imports: [String: [SourceImports.Import]] = [:]
    var files = 0
    for target in package.targets where !target.isTest {
      let read = try SourceImports(below: root.appendingPathComponent(target.path), root: root)
      imports[target.name] = read.imports
      files += read.files
    }
    self.imports = imports
    self.files = files
  }

  /// Each import or dependency that is not allowed, one sentence each.
  var violations: [String] {
    wrongArrows + sharedLibraries + cycles
  }

  private var sourceTargets: [PackageText.Target] { package.targets.filter { !$0.isTest } }

  private var wrongArrows: [String] {
    var lines: [String] = []
    for target in sourceTargets {
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
      let importers = sourceTargets.filter { target in
        target.dependencies.contains(library)
          || imports[target.name, default: []].contains { $0.module == library }
      }
      return importers.count == 1
        ? nil : "\(library) must have exactly one importer, not \(importers.map(\.name).sorted())"
    }
  }

  /// What is left when everything without arrows to the rest has been taken away, again and again.
  private var cycles: [String] {
    let names = Set(sourceTargets.map(\.name))
    var arrows: [String: Set<String>] = [:]
    for target in sourceTargets {
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
