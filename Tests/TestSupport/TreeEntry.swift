import Foundation

/// Everything about one path of a tree that a backup or a migration could change.
public struct TreeEntry: Hashable, Sendable {
  /// What can be compared.
  public enum Aspect: String, CaseIterable, Sendable {
    case type, mode, size, content, linkTarget, attributes, hardLink, owner, modified, changed, inode
  }

  /// What kind of thing a path is.
  public enum Kind: String, Sendable {
    case file, directory, symbolicLink, other
  }

  /// What kind of thing it is.
  public let kind: Kind

  /// The permission bits.
  public let mode: UInt16

  /// User and group id.
  public let owner: [UInt32]

  /// A file's size in bytes; 0 for others.
  public let size: Int64

  /// A file's content; empty for others.
  public let content: Data

  /// A symbolic link's target.
  public let linkTarget: [UInt8]?

  /// Extended attributes.
  public let attributes: [[UInt8]: [UInt8]]

  /// The first path of the tree that has the same inode, when this is a later one.
  public let hardLink: [UInt8]?

  /// Time of last modification, in nanoseconds since 1970.
  public let modified: Int64

  /// Time of last status change, in nanoseconds since 1970.
  public let changed: Int64

  /// The inode number.
  public let inode: UInt64

  /// One aspect as text for a message.
  func text(_ aspect: Aspect) -> String {
    switch aspect {
    case .type: kind.rawValue
    case .mode: String(mode, radix: 8)
    case .size: "\(size) bytes"
    case .content: "\(size) bytes \(preview)"
    case .linkTarget: linkTarget.map(readable) ?? "none"
    case .attributes:
      attributes.map { "\(readable($0.key))=\(readable($0.value))" }.sorted().joined(separator: ", ")
    case .hardLink: hardLink.map(readable) ?? "own inode"
    case .owner: owner.map(String.init).joined(separator: ":")
    case .modified: String(modified)
    case .changed: String(changed)
    case .inode: String(inode)
    }
  }

  /// Whether an aspect is the same. Texts of both would cost more than to read the tree.
  func equals(_ other: TreeEntry, in aspect: Aspect) -> Bool {
    switch aspect {
    case .type: kind == other.kind
    case .mode: mode == other.mode
    case .size: size == other.size
    case .content: content == other.content
    case .linkTarget: linkTarget == other.linkTarget
    case .attributes: attributes == other.attributes
    case .hardLink: hardLink == other.hardLink
    case .owner: owner == other.owner
    case .modified: modified == other.modified
    case .changed: changed == other.changed
    case .inode: inode == other.inode
    }
  }

  private var preview: String {
    "“" + readable(Array(content.prefix(60))) + (content.count > 60 ? "…" : "") + "”"
  }
}
