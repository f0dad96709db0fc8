/// The style of all pages: one column, calm colours, light and dark, and paper. It is part of a template: it may not have
/// two braces next to each other.
enum HTMLStyle {
  static let text = """
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
    h1, h2, h3, h4 { line-height: 1.25; margin: 0; text-wrap: balance; }
    h1 { font-size: 1.75rem; font-weight: 650; letter-spacing: -0.01em; }
    h2 { font-size: 1.25rem; font-weight: 650; }
    h3 { font-size: 1rem; font-weight: 600; margin-top: 1.75rem; }
    h4 { font-size: 0.9375rem; font-weight: 600; margin-top: 1.25rem; }
    h2 .muted, h3 .muted, h4 .muted { font-weight: 400; font-size: 0.875rem; letter-spacing: 0; }
    p, ul, dl, pre { margin: 0.5rem 0 0; }
    ul { padding-left: 1.25rem; }
    a { color: var(--link); }
    :focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 2px; }
    code, pre, td.code, td del, td ins, .sides dd {
      font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, Liberation Mono, DejaVu Sans Mono, monospace;
      font-size: 0.8125rem;
    }
    h3 code { font-size: 0.9375rem; }
    code, td, th, dd, del, ins, mark, .line { unicode-bidi: isolate; }
    .muted { color: var(--muted); }
    .name { white-space: nowrap; }
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
    dl { display: grid; gap: 0.25rem 1.5rem; margin-top: 1rem; }
    dl > div { display: grid; grid-template-columns: 9rem 1fr; gap: 0 1rem; }
    dt { color: var(--muted); }
    dd { margin: 0; }
    dl.sides { grid-template-columns: 1fr 1fr; margin-top: 0.5rem; }
    dl.sides > div { display: block; background: var(--raised); border-radius: 0.25rem; padding: 0.5rem 0.75rem; }
    section { margin-top: 2.5rem; }
    .scroll { overflow-x: auto; margin-top: 0.75rem; }
    table { border-collapse: collapse; width: 100%; }
    table.narrow { width: auto; }
    table.narrow th, table.narrow td { padding-left: 1.75rem; }
    table.narrow th:first-child { padding-left: 0; }
    caption { text-align: left; color: var(--muted); font-size: 0.8125rem; padding-bottom: 0.25rem; }
    th, td { text-align: left; vertical-align: baseline; padding: 0.375rem 0.75rem; border-bottom: 1px solid var(--rule); }
    th:first-child, td:first-child { padding-left: 0; }
    th:last-child, td:last-child { padding-right: 0; }
    thead th { color: var(--muted); font-size: 0.8125rem; font-weight: 600; white-space: nowrap; }
    tbody th { font-weight: 400; overflow-wrap: break-word; }
    th.number, td.number { text-align: right; white-space: nowrap; }
    td.added, td.removed, td.changed, td.warned { white-space: nowrap; }
    td.added { color: var(--good); }
    td.removed { color: var(--bad); }
    td.changed { color: var(--info); }
    td.warned { color: var(--note); }
    del, ins { text-decoration: none; }
    td del, td ins { display: block; padding: 0 0.25rem; border-radius: 0.125rem; }
    td del { background: var(--bad-page); }
    td ins { background: var(--good-page); }
    td del::before { content: "−"; margin-right: 1ch; color: var(--bad); }
    td ins::before { content: "+"; margin-right: 1ch; color: var(--good); }
    mark { background: var(--note-page); color: inherit; font-weight: 600; border-radius: 0.125rem; }
    del mark { background: var(--bad-mark); }
    ins mark { background: var(--good-mark); }
    .bar { display: block; width: 100%; min-width: 5rem; max-width: 14rem; margin-top: 0.25rem; }
    .bar rect { fill: var(--muted); }
    .bar rect.removed { fill: var(--bad); }
    .bar rect.added { fill: var(--good); }
    .lines {
      background: var(--raised); border-radius: 0.25rem; padding: 0.5rem 0; white-space: pre-wrap; line-height: 1.45;
    }
    .line { display: block; padding: 0 0.75rem 0 2.75ch; text-indent: -2ch; }
    del.line { background: var(--bad-page); }
    ins.line { background: var(--good-page); }
    details { margin-top: 0.5rem; }
    summary { cursor: pointer; padding: 0.125rem 0; }
    details > :not(summary) { margin-left: 1rem; }
    footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--rule); color: var(--muted); font-size: 0.8125rem; }
    @media (max-width: 40rem) {
      body { padding: 1.25rem 1rem 2rem; }
      h1 { font-size: 1.375rem; }
      dl > div { grid-template-columns: 1fr; }
      dl.sides { grid-template-columns: 1fr; }
      details > :not(summary) { margin-left: 0; }
      .scroll table:not(.narrow) { min-width: 34rem; }
      table.narrow th, table.narrow td { padding-left: 0.75rem; }
    }
    @media print {
      @page { margin: 18mm 15mm; }
      html { font-size: 9.5pt; }
      body { padding: 0; max-width: none; }
      .scroll { overflow: visible; }
      section { margin-top: 1.5rem; }
      h2, h3, h4, caption, summary { break-after: avoid; }
      tr, .verdict, .line { break-inside: avoid; }
      del, ins, mark, .verdict, .lines, .bar { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
      a { color: inherit; text-decoration: none; }
    }
    """
}
