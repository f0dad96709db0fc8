import Formats

/// Checks a privacy manifest against Apple's lists of 2024. They grow: an unknown word may be new.
struct PrivacyManifest {
  static let categoryPrefix = "NSPrivacyAccessedAPICategory"
  static let typePrefix = "NSPrivacyCollectedDataType"
  private static let purposePrefix = "NSPrivacyCollectedDataTypePurpose"

  private static let reasons: [String: Set<String>] = [
    "FileTimestamp": ["DDA9.1", "C617.1", "3B52.1", "0A2A.1"],
    "SystemBootTime": ["35F9.1", "8FFB.1", "3D61.1"],
    "DiskSpace": ["85F4.1", "E174.1", "7D9E.1", "B728.1"],
    "ActiveKeyboards": ["3EC4.1", "54BD.1"],
    "UserDefaults": ["CA92.1", "1C8F.1", "C56D.1", "AC6B.1"],
  ]

  private static let types = Set(
    """
    Name EmailAddress PhoneNumber PhysicalAddress OtherUserContactInfo Health Fitness PaymentInfo CreditInfo \
    OtherFinancialInfo PreciseLocation CoarseLocation SensitiveInfo Contacts EmailsOrTextMessages PhotosorVideos AudioData \
    GameplayContent CustomerSupport OtherUserContent BrowsingHistory SearchHistory UserID DeviceID PurchaseHistory \
    ProductInteraction AdvertisingData OtherUsageData CrashData PerformanceData OtherDiagnosticData EnvironmentScanning \
    Hands Head OtherDataTypes
    """.split(separator: " ").map(String.init))

  private static let purposes: Set<String> = [
    "ThirdPartyAdvertising", "DeveloperAdvertising", "Analytics", "ProductPersonalization",
    "AppFunctionality",
    "Other",
  ]

  private let part: AppDeclaration.Part

  init(_ part: AppDeclaration.Part) { self.part = part }

  func check(_ context: inout AuditContext) {
    for entry in part.values.dictionaries("NSPrivacyAccessedAPITypes") {
      let category = entry.texts("NSPrivacyAccessedAPIType").first ?? ""
      guard let known = word(category, Self.categoryPrefix, among: Array(Self.reasons.keys), &context) else {
        continue
      }
      let given = entry.texts("NSPrivacyAccessedAPITypeReasons")
      if given.isEmpty { add(category, "it has no reason", &context) }
      for reason in given where Self.reasons[known]?.contains(reason) != true {
        let other = Self.reasons.first { $0.value.contains(reason) }?.key
        add(
          "\(category), \(reason)", other.map { "the reason belongs to \($0)" } ?? "an unknown reason",
          &context)
      }
    }
    for entry in part.values.dictionaries("NSPrivacyCollectedDataTypes") {
      let type = entry.texts("NSPrivacyCollectedDataType").first ?? ""
      _ = word(type, Self.typePrefix, among: Array(Self.types), &context)
      let purposes = entry.texts("NSPrivacyCollectedDataTypePurposes")
      if purposes.isEmpty { add(type, "it has no purpose", &context) }
      for purpose in purposes { _ = word(purpose, Self.purposePrefix, among: Array(Self.purposes), &context) }
    }
    let tracks = part.values["NSPrivacyTracking"] == .boolean(true)
    let domains = part.values.texts("NSPrivacyTrackingDomains")
    if !tracks, !domains.isEmpty {
      add("NSPrivacyTrackingDomains", "domains are named, and NSPrivacyTracking is not true", &context)
    }
  }

  /// The word behind a prefix, if it is in a list; otherwise it is reported.
  private func word(
    _ text: String, _ prefix: String, among known: [String], _ context: inout AuditContext
  ) -> String? {
    let bare = text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : ""
    if known.contains(bare) { return bare }
    let near = NearestWord.to(text, among: known.map { prefix + $0 })
    add(
      text.isEmpty ? "(no name)" : text, near.map { "did you mean \($0)?" } ?? "it is not in Apple's list",
      &context)
    return nil
  }

  private func add(_ item: String, _ message: String, _ context: inout AuditContext) {
    context.findings.add(.privacyManifestInvalid, part.path, item: item, message, unit: "entry")
  }
}

/// The keys of `Info.plist` that explain a request for a permission.
enum UsageDescriptions {
  static let known = Set(
    """
    AccessoryTracking AppleEvents AppleMusic BluetoothAlways BluetoothPeripheral CalendarsFullAccess Calendars \
    CalendarsWriteOnlyAccess Camera Contacts CriticalMessaging DesktopFolder DocumentsFolder DownloadsFolder \
    EnterpriseMCAM FaceID FallDetection FileProviderDomain FileProviderPresence FinancialData FocusStatus GKFriendList \
    HandsTracking HealthClinicalHealthRecordsShare HealthShare HealthUpdate HomeKit Identity LocalNetwork \
    LocationAlwaysAndWhenInUse LocationAlways Location LocationWhenInUse MainCamera Microphone Motion NFCReader \
    NearbyInteractionAllowOnce NearbyInteraction NetworkVolumes PhotoLibraryAdd PhotoLibrary RemindersFullAccess Reminders \
    RemovableVolumes SensorKit Siri SpeechRecognition SystemAdministration SystemExtension UserTracking VideoSubscriberAccount \
    VoIP WorldSensing AudioCapture
    """.split(separator: " ").map { "NS\($0)UsageDescription" }
  ).union(["NFCReaderUsageDescription", "OSBundleUsageDescription", "NSLocationDefaultAccuracyReduced"])

  private static let placeholders: Set<String> = [
    "todo", "tbd", "fixme", "test", "description", "usage description", "lorem ipsum", "n/a", "none", "-",
    ".", "xxx",
  ]

  static func isPlaceholder(_ text: String) -> Bool {
    let bare = text.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased()
    return bare.isEmpty || placeholders.contains(bare) || bare.hasPrefix("lorem ipsum")
  }
}
