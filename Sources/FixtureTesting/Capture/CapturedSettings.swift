import AppContainer
import FileSystem
import Formats

/// Settings that are captured, key by key.
enum CapturedSettings {
  static func visited<Visitor: LeafVisitor>(
    _ settings: PropertyListDictionary, of path: ContainerPath, _ visitor: inout Visitor
  ) throws -> PropertyListDictionary {
    let names = SecretFields(settings, inside: .plain)
    var result: PropertyListDictionary = [:]
    for (key, value) in settings.sorted() {
      let isSecret = names.isSecret(key: key)
      let label = isSecret ? "\(path): a key" : "\(path): \(key)"
      let place = LeafPlace(
        name: names[key], isChosen: visitor.keys.contains(key), isIdentifier: DeviceIdentifiers.isKey(key),
        label: label)
      let newKey = try visitor.key(key, isSecret: isSecret, LeafPlace(label: path.description))
      result[newKey] = try ValueWalk.value(value, place, &visitor)
    }
    return result
  }
}
