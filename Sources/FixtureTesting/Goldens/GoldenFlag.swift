import AgeEncryption
import AppContainer
import ContainerDiff
import FileSystem

/// Words for the attributes that mean something to apps, in place of a name and a digest that tell a reviewer nothing.
enum GoldenFlag {
  /// `excluded` for Apple's flag as its systems write it, `protection=complete` for a class of data protection.
  private static let known: [(word: String, name: String, digest: String)] =
    ([("excluded", ExclusionAttributes.appleFlag)]
    + ProtectionClass.allCases.map {
      (
        "protection=\($0.rawValue)",
        ExtendedAttribute(name: ProtectionClass.attribute, value: Array($0.appleName.utf8))
      )
    }).compactMap { word, attribute in
      (try? ComparedEntry.digest(of: attribute)).map { (word, attribute.name, $0) }
    }

  /// The word for an attribute; nil for most.
  static func word(_ name: String, _ digest: String) -> String? {
    known.first { $0.name == name && $0.digest == digest }?.word
  }

  /// What a word stands for; nil when it is none of these.
  static func attribute(_ word: String) -> (name: String, digest: String)? {
    known.first { $0.word == word }.map { ($0.name, $0.digest) }
  }
}
