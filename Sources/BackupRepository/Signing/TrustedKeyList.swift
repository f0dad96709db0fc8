import ArchiveSigning
import DrydockErrors
import Formats

/// `trusted:` of `drydock.yaml`: public keys, and files of them, which are read when archives are.
package struct TrustedKeyList: Sendable, Equatable {
  private var given = TrustedKeys()
  private var files: [String] = []

  /// - Parameter resolve: makes a path absolute.
  init(_ node: YAMLNode, _ resolve: (String) -> String) throws {
    let elements = try node.elements("`trusted`")
    guard !elements.isEmpty else {
      throw node.position.error(
        "`trusted` has no key, so that no archive could be restored; name one, or remove the key")
    }
    for element in elements {
      let text = try element.text("a public key, or a file of public keys")
      guard TrustedKeys.isKey(text) else {
        files.append(resolve(text))
        continue
      }
      do { try given.add(line: text) } catch let error as DrydockError {
        throw element.position.error(error.message)
      }
    }
  }

  /// All keys.
  ///
  /// - Throws: `DrydockError` (`badKey`, `notFound`) with the file.
  package func keys() throws -> TrustedKeys {
    var keys = given
    for file in files { try keys.add(file: file) }
    return keys
  }
}
