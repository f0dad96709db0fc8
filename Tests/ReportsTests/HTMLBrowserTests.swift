import Foundation
@testable import Reports
import TestSupport
import Testing

/// Pages as other programs read them: a strict parser, and a browser.
@Suite("Pages of HTML in a parser and a browser") struct HTMLBrowserTests {
  // Made once: they are large.
  private static let hostilePages = pages(PageSamples.hostile + [PageSamples.long])
  private static let plainPages = pages(PageSamples.plain)

  private static func pages(_ texts: [String]) -> Result<[(name: String, html: String)], any Error> {
    Result { try PageSamples.pages(texts).map { ($0.name, $0.page.html()) } }
  }

  @Test("A strict parser finds no error, whatever the values are")
  func strict() throws {
    try TemporaryDirectory.with { directory in
      let script = """
        import sys, html5lib
        for name in sys.argv[1:]:
            html5lib.HTMLParser(strict=True).parse(open(name, "rb"))
        """
      var files: [String] = []
      for (name, html) in try Self.hostilePages.get() + Self.plainPages.get() {
        files.append(directory("\(files.count) \(name).html"))
        try html.write(toFile: files[files.count - 1], atomically: true, encoding: .utf8)
      }
      // The system's own, which has the system's packages.
      let python = "/usr/bin/python3"
      let parsed = try Command.run(python, ["-c", script] + files)
      #expect(parsed.succeeded, "\(parsed)")
      // It does find errors.
      let wrong = try Self.plainPages.get()[0].html.replacing("</h1>", with: "</h2>")
      try wrong.write(toFile: files[0], atomically: true, encoding: .utf8)
      #expect(try !Command.run(python, ["-c", script, files[0]]).succeeded)
    }
  }

  /// The policy would keep a script from running: here it is taken out, and a script is put in that checks the page.
  @Test("A browser finds structure, keyboard and contrast as they must be, and no element but a page's own")
  func checks() throws {
    let script = try String(
      contentsOfFile: ReportSamples.repository + "/Tests/ReportsTests/Browser/checks.js", encoding: .utf8)
    func problems(_ html: String) throws -> Substring {
      let open = html.replacing(#/<meta http-equiv="Content-Security-Policy"[^>]*>/#, with: "")
      #expect(open.utf8.count < html.utf8.count)
      let (dom, log) = try Self.browse(
        open.replacing("</body>", with: "<script id=\"checks\">\(script)</script></body>"), width: 1000)
      return try #require(dom.firstMatch(of: #/<pre id="problems">(.*)</pre>/#), "\(log)").output.1
    }
    for (name, html) in try [
      Self.hostilePages.get()[0], Self.hostilePages.get()[2], Self.hostilePages.get()[4],
      Self.plainPages.get()[0],
    ] {
      let wrong = try problems(html)
      #expect(wrong == "[]", "\(name): \(wrong)")
    }
    // It does find faults.
    let faulty = try Self.plainPages.get()[2].html
      .replacing("<h2", with: "<h4 style='color: #c0c0c0'").replacing("</h2>", with: "</h4>")
      .replacing(" scope=\"row\"", with: "").replacing("tabindex=\"0\"", with: "tabindex=\"3\"")
    let found = try problems(faulty)
    for part in ["skips a level", "contrast", "without a scope", "out of order", "style of"] {
      #expect(found.contains(part), "\(part): \(found)")
    }
  }

  @Test("Hostile values do nothing: no script runs, nothing is loaded, nothing is reported to the console")
  func hostile() throws {
    for (name, html) in try [Self.hostilePages.get()[0], Self.hostilePages.get()[2]] {
      #expect(html.utf8.count < 2_000_000, "\(name): \(html.utf8.count) bytes")
      let (dom, log) = try Self.browse(html, width: 400)
      let title = { (text: String) in
        text.firstMatch(of: #/(?s)<title>(.*?)</title>/#)?.output.1.replacing("&#39;", with: "'")
          .replacing("&quot;", with: "\"")
      }
      #expect(title(dom) == title(html) && title(html) != nil, "\(name)")
      for element in ["<script", "<img", "<base", "<iframe", "<i>", "<b>"] {
        #expect(!dom.contains(element), "\(name): \(element)")
      }
      #expect(!log.contains("CONSOLE"), "\(name): \(log)")
    }
    // The console is seen at all.
    let (_, log) = try Self.browse("<!DOCTYPE html><script>console.error('seen')</script>", width: 400)
    #expect(log.contains("CONSOLE") && log.contains("seen"), "\(log)")
  }

  /// The document after the browser has loaded it, and its log, which has the console in it.
  private static func browse(_ html: String, width: Int) throws -> (dom: String, log: String) {
    try TemporaryDirectory.with { directory in
      let file = directory("page.html")
      try html.write(toFile: file, atomically: true, encoding: .utf8)
      let result = try Command.run(
        Tools.system("chromium-headless-shell"),
        [
          "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
          "--disable-background-networking", "--disable-component-update", "--no-first-run",
          "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=\(directory("profile"))",
          "--enable-logging=stderr", "--window-size=\(width),900", "--dump-dom", "file://\(file)",
        ], environment: ["HOME": directory("home")], limit: 60)
      #expect(result.succeeded, "\(result)")
      return (result.output, result.allErrors)
    }
  }
}
