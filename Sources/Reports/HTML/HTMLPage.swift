import Drydock
import Foundation
import Mustache

/// One page of HTML in one file, which asks for nothing else: neither a network, nor a script.
package struct HTMLPage {
  /// What the reader must know first, by a word and not by a colour alone.
  enum Verdict: String {
    case good, changes, warning, bad
  }

  /// A part with a heading.
  struct Section {
    /// Its place, for links: letters and hyphens.
    var id: String
    var heading: String
    /// Behind the heading, such as a number.
    var detail = ""
    var blocks: [HTMLBlock]
  }

  /// What kind of page it is, such as `Dry run of migrations`; and what it is about.
  var kind: String, title: String
  var verdict: Verdict
  /// The verdict in a word or two, and a sentence.
  var word: String, sentence: String
  var facts: [(name: String, value: [HTMLSpan])] = []
  var sections: [Section] = []

  /// The page of a command that failed.
  ///
  /// - Parameter lines: the error, and what to do.
  package init(failed kind: String, title: String, lines: [String]) {
    self.init(
      kind: kind, title: title, verdict: .bad, word: "Failed",
      sentence: lines.first ?? "the reason is not known")
    if lines.count > 1 {
      sections = [
        Section(id: "details", heading: "Details", blocks: [.list(lines.dropFirst().map(HTMLSpan.prose))])
      ]
    }
  }

  init(kind: String, title: String, verdict: Verdict, word: String, sentence: String) {
    (self.kind, self.title, self.verdict) = (kind, title, verdict)
    (self.word, self.sentence) = (word, sentence)
  }

  /// The document.
  ///
  /// - Parameters:
  ///   - time: when it was made.
  ///   - program: the program's name and version.
  package func html(time: Date = Date(), program: String = "drydock") -> String {
    let made = time.formatted(
      Date.ISO8601FormatStyle(dateSeparator: .dash, dateTimeSeparator: .space, timeZone: .gmt).year().month()
        .day().time(includingFractionalSeconds: false))
    let context: [String: Any] = [
      "kind": HTMLText(kind), "title": HTMLText(title), "verdict": HTMLText(verdict.rawValue),
      "word": HTMLText(word), "sentence": ["spans": HTMLSpan.prose(sentence).map(\.context)] as [String: Any],
      "hasFacts": !facts.isEmpty,
      "facts": HTMLBlock.context(facts), "made": HTMLText("\(made) UTC"), "program": HTMLText(program),
      "sections": sections.map { section -> [String: Any] in
        [
          "id": HTMLText(section.id), "heading": HTMLText(section.heading),
          "detail": HTMLText(section.detail), "blocks": section.blocks.map(\.context),
        ]
      },
    ]
    return HTMLTemplates.library.render(context, withTemplate: "page") ?? ""
  }
}

/// The templates of all pages. Every value is escaped; a test reads them for `{{{` and `{{&`.
enum HTMLTemplates {
  static let library: MustacheLibrary = {
    do {
      // The page's policy allows this style alone.
      let style = try SHA256.hash(Array(HTMLStyle.text.utf8))
      let hash = Data(style.bytes).base64EncodedString()
      return MustacheLibrary(
        templates: try sources(styleHash: hash).mapValues(MustacheTemplate.init(string:)))
    } catch {
      preconditionFailure("a template is invalid: \(error)")
    }
  }()

  static func sources(styleHash: String) -> [String: String] {
    [
      "page": """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-\(styleHash)'; base-uri 'none'; form-action 'none'">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <meta name="referrer" content="no-referrer">
      <title>{{title}} – {{kind}}</title>
      <style>\(HTMLStyle.text)</style>
      </head>
      <body>
      <header class="{{verdict}}">
      <p class="kind">{{kind}}</p>
      <h1>{{title}}</h1>
      <p class="verdict"><strong>{{word}}</strong> <span>{{#sentence}}{{>spans}}{{/sentence}}</span></p>
      {{#hasFacts}}
      {{>facts}}
      {{/hasFacts}}
      </header>
      <main>
      {{#sections}}
      <section aria-labelledby="{{id}}">
      <h2 id="{{id}}">{{heading}} <span class="muted">{{detail}}</span></h2>
      {{#blocks}}
      {{>*block}}
      {{/blocks}}
      </section>
      {{/sections}}
      </main>
      <footer>
      <p>Made {{made}} by {{program}}. Secrets are hidden; other values are the user’s data.</p>
      </footer>
      </body>
      </html>

      """,
      "heading-3": "<h3>{{>spans}}</h3>\n",
      "heading-4": "<h4>{{>spans}}</h4>\n",
      "paragraph": "<p>{{>spans}}</p>\n",
      "list": """
      <ul>
      {{#items}}
      <li>{{>spans}}</li>
      {{/items}}
      </ul>

      """,
      "facts": """
      <dl>
      {{#facts}}
      <div><dt>{{name}}</dt><dd>{{>spans}}</dd></div>
      {{/facts}}
      </dl>

      """,
      "sides": """
      <dl class="sides">
      {{#sides}}
      <div><dt>{{title}}</dt><dd>{{>spans}}</dd></div>
      {{/sides}}
      </dl>

      """,
      "fold": "<details><summary>{{>spans}}</summary>\n{{#blocks}}{{>*block}}{{/blocks}}</details>\n",
      "fold-open":
        "<details open><summary>{{>spans}}</summary>\n{{#blocks}}{{>*block}}{{/blocks}}</details>\n",
      "lines": "<pre class=\"lines\">{{#lines}}{{>*line}}{{/lines}}</pre>\n",
      "line-same": "<span class=\"line\">  {{>spans}}</span>",
      "line-removed": "<del class=\"line\">− {{>spans}}</del>",
      "line-added": "<ins class=\"line\">+ {{>spans}}</ins>",
      "line-gap": "<span class=\"line muted\">{{>spans}}</span>",
      "listing": """
      {{#listing}}
      {{#table}}
      {{>table}}
      {{/table}}
      {{#folded}}
      <details><summary>{{summary}}</summary>
      {{#table}}
      {{>table}}
      {{/table}}
      </details>
      {{/folded}}
      {{#more}}
      <p class="muted">{{more}}</p>
      {{/more}}
      {{/listing}}

      """,
      "table": """
      <div class="scroll" role="group" aria-label="{{caption}}" tabindex="0">
      <table{{#isNarrow}} class="narrow"{{/isNarrow}}>
      <caption{{#hidesCaption}} class="hidden"{{/hidesCaption}}>{{caption}}</caption>
      <thead><tr>{{#columns}}{{>*column}}{{/columns}}</tr></thead>
      <tbody>
      {{#rows}}
      <tr>{{#cells}}{{>*cell}}{{/cells}}</tr>
      {{/rows}}
      </tbody>
      </table>
      </div>

      """,
      "column-text": "<th scope=\"col\">{{title}}</th>",
      "column-number": "<th scope=\"col\" class=\"number\">{{title}}</th>",
      "cell-header": "<th scope=\"row\">{{>content}}</th>",
      "cell-text": "<td>{{>content}}</td>",
      "cell-code": "<td class=\"code\">{{>content}}</td>",
      "cell-added": "<td class=\"added\">{{>content}}</td>",
      "cell-removed": "<td class=\"removed\">{{>content}}</td>",
      "cell-warned": "<td class=\"warned\">{{>content}}</td>",
      "cell-changed": "<td class=\"changed\">{{>content}}</td>",
      "cell-number": "<td class=\"number\">{{>content}}</td>",
      "content":
        "{{#.target}}<a href=\"#{{.}}\">{{/.target}}{{>spans}}{{#.target}}</a>{{/.target}}"
        + "{{#.removed}}<del>{{>spans}}</del>{{/.removed}}{{#.added}}<ins>{{>spans}}</ins>{{/.added}}"
        + "{{#.bar}}{{>bar}}{{/.bar}}",
      "bar": """
      <svg class="bar" viewBox="0 0 100 {{height}}" height="{{height}}" preserveAspectRatio="none" aria-hidden="true">{{#bars}}\
      <rect class="{{kind}}" x="0" y="{{y}}" width="{{width}}" height="5"></rect>{{/bars}}</svg>
      """,
      "spans": "{{#spans}}{{>*span}}{{/spans}}",
      "span-plain": "{{text}}",
      "span-line": "{{text}}<br>",
      "span-code": "<code>{{text}}</code>",
      "span-name": "<code class=\"name\">{{text}}</code>",
      "span-mark": "<mark>{{text}}</mark>",
      "span-muted": "<span class=\"muted\">{{text}}</span>",
    ]
  }
}
