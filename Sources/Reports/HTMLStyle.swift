import Drydock
import Foundation

/// The style of all pages: one column, calm colours, light and dark, and paper.
enum HTMLStyle {
  /// The page's policy allows this style alone.
  static let hash: String = {
    do { return Data(try SHA256.hash(Array(text.source.utf8)).bytes).base64EncodedString() } catch {
      preconditionFailure("the style cannot be hashed: \(error)")
    }
  }()

  static let text: HTML = """
    :root {
      --page: #ffffff; --raised: #f5f6f8; --text: #1c2128; --muted: #586069; --rule: #d5dae0; --link: #0a56b0;
      --good: #14692f; --good-page: #e2f5e8; --bad: #9c1c23; --bad-page: #fdebeb;
      --note: #7a4d00; --note-page: #fdf3d7; --info: #1d4f8f; --info-page: #e6f0fb;
      --good-mark: #b4e6c3; --bad-mark: #f8c4c4;
      color-scheme: light;
    }
    @media screen and (prefers-color-scheme: dark) {
      :root {
        --page: #14171c; --raised: #1d2127; --text: #e3e7ec; --muted: #a0a9b4; --rule: #363d47; --link: #86b9f5;
        --good: #86d9a0; --good-page: #16301f; --bad: #f7a6a6; --bad-page: #3b1b1e;
        --note: #e6c175; --note-page: #352b14; --info: #9cc6f7; --info-page: #182b42;
        --good-mark: #1f5a34; --bad-mark: #6f2a2f;
        color-scheme: dark;
      }
    }
    * { box-sizing: border-box; }
    html { font-size: 100%; -webkit-text-size-adjust: 100%; }
    body {
      margin: 0 auto; padding: 2.5rem 1.5rem 3rem; max-width: 66rem;
      background: var(--page); color: var(--text);
      font: 0.9375rem/1.5 system-ui, -apple-system, sans-serif; font-variant-numeric: tabular-nums;
      overflow-wrap: anywhere;
    }
    h1, h2 { line-height: 1.25; margin: 0; text-wrap: balance; }
    h1 { font-size: 1.75rem; font-weight: 650; letter-spacing: -0.01em; }
    h2 { font-size: 1.25rem; font-weight: 650; }
    p, ul, pre { margin: 0.5rem 0 0; }
    ul { padding-left: 1.25rem; }
    :focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 2px; }
    code, pre, del, ins {
      font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, Liberation Mono, DejaVu Sans Mono, monospace;
      font-size: 0.8125rem;
    }
    code, td, th, li, del, ins, mark, .line { unicode-bidi: isolate; }
    .muted { color: var(--muted); }
    .hidden {
      position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%);
      white-space: nowrap;
    }
    .kind { margin: 0 0 0.25rem; color: var(--muted); }
    header { border-bottom: 1px solid var(--rule); padding-bottom: 1.5rem; }
    .verdict {
      margin-top: 1rem; padding: 0.75rem 1rem; border-left: 0.25rem solid; border-radius: 0.25rem;
      display: flex; flex-wrap: wrap; gap: 0 0.75rem;
    }
    .verdict strong { font-weight: 650; }
    .verdict span { color: var(--text); }
    .good .verdict { color: var(--good); background: var(--good-page); }
    .bad .verdict { color: var(--bad); background: var(--bad-page); }
    .warning .verdict { color: var(--note); background: var(--note-page); }
    .changes .verdict { color: var(--info); background: var(--info-page); }
    section { margin-top: 2.5rem; }
    .scroll { overflow-x: auto; margin-top: 0.75rem; }
    table { border-collapse: collapse; width: 100%; }
    th, td { text-align: left; vertical-align: baseline; padding: 0.375rem 0.75rem; border-bottom: 1px solid var(--rule); }
    th:first-child, td:first-child { padding-left: 0; }
    th:last-child, td:last-child { padding-right: 0; }
    thead th { color: var(--muted); font-size: 0.8125rem; font-weight: 600; white-space: nowrap; }
    tbody th { font-weight: 400; overflow-wrap: break-word; }
    th.number, td.number { text-align: right; white-space: nowrap; }
    .mark { white-space: nowrap; }
    .added { color: var(--good); }
    .removed { color: var(--bad); }
    .changed { color: var(--info); }
    .warned { color: var(--note); }
    del, ins { text-decoration: none; }
    del, ins { padding: 0 0.25rem; border-radius: 0.125rem; }
    del { background: var(--bad-page); }
    ins { background: var(--good-page); }
    mark { background: var(--note-page); color: inherit; font-weight: 600; border-radius: 0.125rem; }
    del mark { background: var(--bad-mark); }
    ins mark { background: var(--good-mark); }
    ul.lines { list-style: none; padding-left: 0; }
    .text { white-space: pre-wrap; }
    ul.lines ul.lines { padding-left: 2rem; margin-top: 0.125rem; }
    pre.lines {
      background: var(--raised); border-radius: 0.25rem; padding: 0.5rem 0; white-space: pre-wrap; line-height: 1.45;
    }
    .line { display: block; padding: 0 0.75rem 0 2.75ch; text-indent: -2ch; }
    details { margin-top: 0.5rem; }
    summary { cursor: pointer; padding: 0.125rem 0; }
    details > :not(summary) { margin-left: 1rem; }
    footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--rule); color: var(--muted); font-size: 0.8125rem; }
    @media (max-width: 40rem) {
      body { padding: 1.25rem 1rem 2rem; }
      h1 { font-size: 1.375rem; }
      details > :not(summary) { margin-left: 0; }
      .scroll table { min-width: 34rem; }
    }
    @media print {
      @page { margin: 18mm 15mm; }
      html { font-size: 9.5pt; }
      body { padding: 0; max-width: none; }
      .scroll { overflow: visible; }
      section { margin-top: 1.5rem; }
      h2, summary { break-after: avoid; }
      tr, .verdict, .line { break-inside: avoid; }
      del, ins, mark, .verdict, pre { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
    }
    """
}
