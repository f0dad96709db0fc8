import Foundation
import Testing

@testable import ContainerAudit
@testable import MigrationEngine

@Suite("Audit rules") struct AuditRuleTests {
  private let sandbox: AuditSandbox
  init() throws { sandbox = try AuditSandbox() }

  @Test(
    "Each finds what it is for, and nothing in a container that looks alike", arguments: AuditRuleCase.all)
  func rule(_ example: AuditRuleCase) throws {
    try example.build(sandbox)
    let report = try sandbox.audit()
    let found = report.findings.filter { $0.rule == example.rule }
    #expect(found.isEmpty != example.isFinding, "\(report.findings)\n\(report.notChecked)")
    // A rule that cannot look is silent, too.
    #expect(report.unreadable.isEmpty)
    let text = String(decoding: try JSONEncoder().encode(report), as: UTF8.self)
    #expect(!text.contains(MadeUp.password), "\(text)")
    for secret in [MadeUp.github, MadeUp.stripe, MadeUp.jwt] { #expect(!text.contains(secret), "\(text)") }
  }

  @Test("Each has an example that it finds, and one that it ignores")
  func complete() {
    for rule in AuditRuleID.allCases {
      let kinds = AuditRuleCase.all.filter { $0.rule == rule }.map(\.isFinding)
      #expect(Set(kinds) == [true, false], "\(rule.rawValue)")
    }
  }

  @Test("Each has its texts, which name operations that exist")
  func texts() throws {
    #expect(Set(AuditRule.all.map(\.id)) == Set(AuditRuleID.allCases))
    #expect(AuditRule.all.count == AuditRuleID.allCases.count)
    for rule in AuditRule.all {
      for text in [rule.title, rule.why, rule.fix] {
        #expect(text.count > 10 && text.last != "." && !text.contains("  "), "\(rule.id.rawValue): \(text)")
      }
      if let source = rule.source { #expect(source.hasPrefix("https://"), "\(source)") }
      for match in rule.fix.matches(of: #/`((?:files|defaults|vault)\.[a-z-]+)`/#) {
        #expect(Operations.all.contains { $0.name == match.1 }, "\(rule.id.rawValue): \(match.1)")
      }
    }
  }

  @Test(
    "Known forms of tokens have their service's name",
    arguments: [
      (MadeUp.github, "a GitHub token"), (MadeUp.aws, "an AWS key"), (MadeUp.google, "a Google API key"),
      (MadeUp.slack, "a Slack token"), (MadeUp.stripe, "a Stripe key"), (MadeUp.jwt, "a JSON Web Token"),
      (MadeUp.pem, "a private key in PEM form"),
      ("https://ada:" + MadeUp.password + "@example.com", "a URL with a password"),
      ("Bearer " + MadeUp.password, "an authorization header"),
    ])
  func forms(_ text: String, _ name: String) {
    #expect(SecretEvidence.form(in: "it is \(text) here") == name)
  }
}
