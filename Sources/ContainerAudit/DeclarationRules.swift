import FileSystem
import Formats

extension AuditRule {
  private static let manifests = apple("bundleresources/privacy-manifest-files")
  private static let infoKeys = apple("bundleresources/information-property-list")

  static let declarations = [
    AuditRule(
      .privacyManifestMissing, .warning, "no privacy manifest",
      why: "App Store Connect refuses apps that use required-reason APIs without declaring the reason",
      fix: "add `PrivacyInfo.xcprivacy` to the app's target", source: manifests),
    AuditRule(
      .privacyManifestInvalid, .warning, "a privacy manifest with unknown or missing words",
      why: "App Store Connect refuses categories and reasons that are not in Apple's lists",
      fix: "correct the manifest; lists grow: look the word up if it is new", source: manifests),
    AuditRule(
      .requiredReasonMissing, .error, "a required reason that is not declared",
      why: "the container shows that the app uses an API whose reason the manifest has to declare",
      fix: "declare the category with the reason in `NSPrivacyAccessedAPITypes`",
      source: apple("bundleresources/describing-use-of-required-reason-api")),
    AuditRule(
      .dataTypeNotDeclared, .note, "personal data that the manifest does not declare",
      why:
        "data that leaves the device count as collected; data that stay on it do not, and the container does not show which is which",
      fix: "if the app sends them: declare the type in `NSPrivacyCollectedDataTypes`",
      source: apple("bundleresources/describing-data-use-in-privacy-manifests")),
    AuditRule(
      .usageDescriptionEmpty, .error, "a usage description without a text",
      why: "the app ends, or review refuses it, when it asks for the permission",
      fix: "say in one sentence what the data are used for", source: infoKeys),
    AuditRule(
      .usageDescriptionUnknown, .note, "a usage description that no system reads",
      why: "a misspelt key is the same as a missing one", fix: "correct the key", source: infoKeys),
    AuditRule(
      .usageDescriptionMissing, .note, "locations of the user without a usage description",
      why:
        "a table of places in the order of time looks like the user's movements, and no location key is in `Info.plist`",
      fix: "if the app asks for the location: add `NSLocationWhenInUseUsageDescription`", source: infoKeys),
    AuditRule(
      .groupNotEntitled, .error, "an app group without an entitlement",
      why: "the app has no access to the group's directory",
      fix: "add the group to `com.apple.security.application-groups`, or correct `groups:` in drydock.yaml",
      source: apple("bundleresources/entitlements/com.apple.security.application-groups")),
    AuditRule(
      .groupNotConfigured, .warning, "an app group that drydock.yaml does not name",
      why: "backups and migrations leave the group's directory out",
      fix: "add it to `groups:` in drydock.yaml"),
    AuditRule(
      .keychainGroupNotEntitled, .error, "a keychain group without an entitlement",
      why: "the app cannot read the items that are in the group",
      fix: "add the group to `keychain-access-groups`, or move the items: `vault.move-to`",
      source: apple("bundleresources/entitlements/keychain-access-groups")),
    AuditRule(
      .cloudNotEntitled, .note, "iCloud key-value data without an entitlement",
      why: "the store is no longer synchronized: its data are of an older version of the app",
      fix: "add `com.apple.developer.ubiquity-kvstore-identifier`, or remove `Library/SyncedPreferences`",
      source: apple("bundleresources/entitlements/com.apple.developer.ubiquity-kvstore-identifier")),
    AuditRule(
      .transportException, .warning, "an exception from App Transport Security",
      why: "the app may load data without encryption, or with weak encryption; review asks for a reason",
      fix: "remove the exception, or narrow it to the domains that need it",
      source: apple("bundleresources/information-property-list/nsapptransportsecurity")),
  ]
}

/// Compares what an app declares with what its container has.
struct DeclarationRules {
  private let app: AppDeclaration

  init(_ app: AppDeclaration) { self.app = app }

  func check(_ context: inout AuditContext) {
    checkIdentity(&context)
    if let manifests = app.privacy { checkPrivacy(manifests, &context) }
    if let info = app.info {
      checkUsageDescriptions(info, &context)
      checkTransport(info, &context)
    }
    if let entitlements = app.entitlements { checkEntitlements(entitlements, &context) }
    let missing = [
      (app.info == nil, "Info.plist"), (app.privacy == nil, "the privacy manifest"),
      (app.entitlements == nil && app.notes.isEmpty, "entitlements"),
    ].filter(\.0).map(\.1)
    if !missing.isEmpty {
      context.notChecked.append("declarations: \(missing.joined(separator: ", ")), not given")
    }
    context.notChecked.append(
      "required reasons of file timestamps, boot time, disk space and keyboards: the container does not show the use of these APIs"
    )
  }

  private func checkIdentity(_ context: inout AuditContext) {
    guard case .string(let id)? = app.info?.values["CFBundleIdentifier"], context.container.layout == .ios,
      id != context.container.app
    else { return }
    context.notChecked.append("the app is \(id), and the container is of \(context.container.app)")
  }

  // MARK: Privacy manifests

  private func checkPrivacy(_ manifests: [AppDeclaration.Part], _ context: inout AuditContext) {
    for manifest in manifests { PrivacyManifest(manifest).check(&context) }
    let own = app.hasOwnManifest ? manifests.first : nil
    if own == nil {
      context.findings.add(
        .privacyManifestMissing, app.info?.path, "the app has no PrivacyInfo.xcprivacy", unit: "app")
    }
    checkSettingsReasons(own, &context)
    let declared = Set(
      manifests.flatMap { $0.values.dictionaries("NSPrivacyCollectedDataTypes") }.flatMap {
        $0.texts("NSPrivacyCollectedDataType")
      })
    for personal in context.facts.personal {
      let type = PrivacyManifest.typePrefix + personal.kind.dataType
      guard !declared.contains(type) else { continue }
      context.findings.add(
        .dataTypeNotDeclared, personal.path.description, item: personal.item, "\(type) is not declared",
        count: personal.count, unit: "value")
    }
  }

  /// Settings of the app show that it uses `UserDefaults`. The reasons of an SDK's manifest are for the SDK alone.
  private func checkSettingsReasons(_ own: AppDeclaration.Part?, _ context: inout AuditContext) {
    guard let own, context.container.layout == .ios else { return }
    let category = "NSPrivacyAccessedAPICategoryUserDefaults"
    let reasons = Set(
      own.values.dictionaries("NSPrivacyAccessedAPITypes").filter {
        $0.texts("NSPrivacyAccessedAPIType") == [category]
      }.flatMap { $0.texts("NSPrivacyAccessedAPITypeReasons") })
    for path in context.facts.settings {
      let isGroups = path.inGroup != nil
      guard isGroups || path == context.container.standardDefaults else { continue }
      // An app group's settings have a reason of their own; the others are for the app itself, managed ones, and wrappers.
      let fitting: Set<String> = isGroups ? ["1C8F.1", "C56D.1"] : ["CA92.1", "AC6B.1", "C56D.1"]
      guard fitting.isDisjoint(with: reasons) else { continue }
      let wanted = isGroups ? "1C8F.1" : "CA92.1"
      context.findings.add(
        .requiredReasonMissing, own.path, item: "\(category), \(wanted)",
        "the app has settings, and the manifest no reason for them", unit: "settings file",
        example: path.description)
    }
  }

  // MARK: Info.plist

  private func checkUsageDescriptions(_ info: AppDeclaration.Part, _ context: inout AuditContext) {
    for (key, value) in info.values.sorted() where key.hasSuffix("UsageDescription") {
      // Keys are letters; anything else may be a value in the wrong place.
      let shown = key.allSatisfy { $0.isASCII && $0.isLetter } ? key : "NS…UsageDescription"
      if !UsageDescriptions.known.contains(key) {
        let near = NearestWord.to(key, among: UsageDescriptions.known.sorted())
        context.findings.add(
          .usageDescriptionUnknown, info.path, item: shown,
          near.map { "did you mean \($0)?" } ?? "it is not in Apple's list", unit: "key")
      }
      if case .string(let text) = value, !UsageDescriptions.isPlaceholder(text) { continue }
      context.findings.add(
        .usageDescriptionEmpty, info.path, item: shown, "it has no text for the user", unit: "key")
    }
    let hasLocation = info.values.keys.contains { $0.text.hasPrefix("NSLocation") }
    if !hasLocation, let place = context.facts.personal.first(where: { $0.kind == .latitude }) {
      context.findings.add(
        .usageDescriptionMissing, info.path, "NSLocation…UsageDescription is missing", unit: "table",
        example: "\(place.path): \(place.item)")
    }
  }

  private func checkTransport(_ info: AppDeclaration.Part, _ context: inout AuditContext) {
    guard let security = info.values.dictionary("NSAppTransportSecurity") else { return }
    let section = "NSAppTransportSecurity"
    for key in [
      "NSAllowsArbitraryLoads", "NSAllowsArbitraryLoadsForMedia", "NSAllowsArbitraryLoadsInWebContent",
    ]
    where security[key] == .boolean(true) {
      context.findings.add(
        .transportException, info.path, item: "\(section).\(key)", "all hosts are exempt", unit: "key")
    }
    let weak = ["NSExceptionAllowsInsecureHTTPLoads", "NSTemporaryExceptionAllowsInsecureHTTPLoads"]
    for (domain, value) in security.dictionary("NSExceptionDomains")?.sorted() ?? [] {
      guard case .dictionary(let rules) = value else { continue }
      let isLocal = domain == "localhost" || domain == "127.0.0.1" || domain.hasSuffix(".local")
      let isOld = rules.texts("NSExceptionMinimumTLSVersion").contains {
        ["TLSv1.0", "TLSv1.1"].contains($0)
      }
      guard !isLocal, isOld || weak.contains(where: { rules[$0] == .boolean(true) }) else { continue }
      context.findings.add(
        .transportException, info.path, item: "\(section).NSExceptionDomains",
        "connections without TLS, or with an old one",
        unit: "domain", example: domain)
    }
  }

  // MARK: Entitlements

  private func checkEntitlements(_ part: AppDeclaration.Part, _ context: inout AuditContext) {
    let values = part.values
    let container = context.container
    let groups = Set(values.texts("com.apple.security.application-groups"))
    let named = Set(container.configuration.groups.keys)
    for id in named.subtracting(groups).sorted() {
      context.findings.add(
        .groupNotEntitled, part.path, item: id, "drydock.yaml names it, and the entitlements do not",
        unit: "group")
    }
    for id in groups.subtracting(named).sorted() {
      context.findings.add(
        .groupNotConfigured, part.path, item: id, "the app may use it, and `groups:` does not name it",
        unit: "group")
    }
    checkKeychainGroups(values, groups, part.path, &context)
    let synced: ContainerPath = "Library/SyncedPreferences"
    let names = (try? context.staged.live.directory(synced).names()) ?? []
    let hasStore = names.contains { $0.suffix(6).elementsEqual(".plist".utf8) }
    if hasStore, values["com.apple.developer.ubiquity-kvstore-identifier"] == nil {
      context.findings.add(
        .cloudNotEntitled, synced.description, "the entitlements name no key-value store", unit: "directory")
    }
  }

  /// An app's own identifier and its app groups are keychain groups, too. A prefix of the team may be in one list only.
  private func checkKeychainGroups(
    _ values: PropertyListDictionary, _ groups: Set<String>, _ path: String, _ context: inout AuditContext
  ) {
    let entitled =
      groups.union(values.texts("keychain-access-groups")).union(values.texts("application-identifier"))
    let bare = { (group: String) -> String in
      guard let dot = group.firstIndex(of: "."), group[..<dot].count == 10 || group.hasPrefix("$(") else {
        return group
      }
      return String(group[group.index(after: dot)...])
    }
    let known = Set(entitled.map(bare))
    for group in context.facts.keychainGroups where !known.contains(bare(group)) {
      // A profile allows all groups of the team.
      if entitled.contains(where: { $0.hasSuffix(".*") }) { continue }
      context.findings.add(
        .keychainGroupNotEntitled, path, item: group, "the vault has items in it", unit: "group")
    }
  }
}

extension PersonalColumn.Kind {
  var dataType: String {
    switch self {
    case .email: "EmailAddress"
    case .phone: "PhoneNumber"
    case .name: "Name"
    case .latitude, .longitude: "PreciseLocation"
    }
  }
}
