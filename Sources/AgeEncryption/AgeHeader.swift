/// The start of an age file.
public enum AgeHeader {
  /// How many bytes of a file `isPresent(in:)` wants to see at most.
  public static let probeLength = 64

  private static let version = Array("age-encryption.org/v1\n".utf8)
  private static let armor = Array("-----BEGIN AGE ENCRYPTED FILE-----".utf8)

  /// Whether a file that starts with these bytes is an age file, binary or armored.
  public static func isPresent(in firstBytes: some Sequence<UInt8>) -> Bool {
    let bytes = Array(firstBytes)
    if bytes.starts(with: version) { return true }
    // The age tool accepts blank space before the armor, and nowhere else.
    let blank: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
    return bytes.drop { blank.contains($0) }.starts(with: armor)
  }
}
