// Checks a page as accessibility checkers do, in the browser that has laid it out, in both colour schemes. The list of what
// is wrong becomes the text of #problems.
"use strict";
const problems = [];
const all = selector => [...document.querySelectorAll(selector)];
const name = element => `<${element.localName} class="${element.getAttribute("class") ?? ""}"> ${element.textContent.slice(0, 40)}`;
const require = (condition, text) => { if (!condition) problems.push(text); };

for (const details of all("details")) details.open = true;

// Structure.
require(document.documentElement.lang === "en", "no language");
require(document.title.length > 0, "no title");
for (const landmark of ["body > header", "body > main", "body > footer", "h1"])
  require(all(landmark).length === 1, `${all(landmark).length} of ${landmark}`);
let level = 0;
for (const heading of all("h1, h2, h3, h4, h5, h6")) {
  const own = Number(heading.localName[1]);
  require(own <= level + 1, `a heading skips a level: ${name(heading)}`);
  require(heading.textContent.trim() !== "", `an empty heading: ${name(heading)}`);
  level = own;
}
const ids = all("[id]").map(element => element.id);
require(new Set(ids).size === ids.length, `an id occurs twice: ${ids}`);
for (const section of all("section"))
  require(document.getElementById(section.getAttribute("aria-labelledby")) !== null, `no name: ${name(section)}`);
for (const details of all("details"))
  require(details.firstElementChild?.localName === "summary", `no summary: ${name(details)}`);
for (const table of all("table")) {
  require(table.caption !== null && table.caption.textContent.trim() !== "", `no caption: ${name(table)}`);
  require(table.tHead !== null && table.tHead.querySelectorAll("th[scope=col]").length > 0, `no columns: ${name(table)}`);
  const columns = table.tHead.rows[0].cells.length;
  for (const row of table.tBodies[0].rows) {
    require(row.cells.length === columns, `a row of another length: ${name(row)}`);
    require(row.querySelector("th[scope=row]") !== null, `a row without a header: ${name(row)}`);
  }
}
for (const header of all("th")) require(["col", "row"].includes(header.scope), `a header without a scope: ${name(header)}`);

// Nothing but text: no script, nothing that is loaded or sent.
const known = new Set(("html head meta title style body header main footer section h1 h2 h3 h4 p ul li dl div dt dd a strong span "
  + "code mark br pre del ins details summary table caption thead tbody tr th td").split(" "));
const attributes = new Set(("lang charset http-equiv content name class id href role tabindex aria-label aria-labelledby aria-hidden "
  + "scope open viewBox preserveAspectRatio height width x y").split(" "));
for (const element of all("*")) {
  if (element.id === "checks") continue;
  require(known.has(element.localName), `an element that belongs in no page: ${name(element)}`);
  for (const attribute of element.attributes)
    if (element.localName !== "script")
      require(attributes.has(attribute.name), `an attribute that belongs in no page: ${attribute.name} of ${name(element)}`);
}
for (const link of all("a"))
  require(link.getAttribute("href").startsWith("#") && document.getElementById(link.getAttribute("href").slice(1)) !== null,
    `a link that leads nowhere: ${link.getAttribute("href")}`);
require(performance.getEntriesByType("resource").length === 0, "something was loaded");

// The keyboard.
require(document.documentElement.scrollWidth <= innerWidth, `the page is ${document.documentElement.scrollWidth} wide`);
// A class replaces the focus: a browser without a window may not have one.
const rules = [...document.styleSheets[0].cssRules].filter(rule => rule.selectorText === ":focus-visible");
require(rules.length === 1, "no style for the focus");
for (const rule of rules) rule.selectorText = ".focused";
for (const element of all("a, summary, [tabindex]")) {
  require(!element.hasAttribute("tabindex") || element.tabIndex === 0, `out of order: ${name(element)}`);
  element.focus();
  require(document.activeElement === element, `cannot be focused: ${name(element)}`);
  element.classList.add("focused");
  require(getComputedStyle(element).outlineStyle !== "none", `the focus is not seen: ${name(element)}`);
  element.classList.remove("focused");
}
for (const element of all("body *"))
  if (["auto", "scroll"].includes(getComputedStyle(element).overflowX))
    require(element.tabIndex === 0 && element.getAttribute("aria-label"), `cannot be scrolled by keyboard: ${name(element)}`);

// Contrast.
const parse = color => {
  const parts = color.match(/[\d.]+/g).map(Number);
  return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
};
const background = element => {
  for (let at = element; at; at = at.parentElement) {
    const { rgb, alpha } = parse(getComputedStyle(at).backgroundColor);
    if (alpha === 1) return rgb;
    require(alpha === 0, `a background that is half transparent: ${name(at)}`);
  }
  return [255, 255, 255];
};
const luminance = rgb => {
  const [r, g, b] = rgb.map(value => value / 255).map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
};
const pages = new Set();
const checkContrast = scheme => {
  pages.add(background(document.body).join());
  const seen = new Set();
  for (const element of all("body, body *")) {
    if (element.id === "checks") continue;
    const isBar = element.localName === "rect";
    const hasText = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim() !== "");
    if (!isBar && !hasText) continue;
    const style = getComputedStyle(element);
    const [front, back] = [parse(isBar ? style.fill : style.color).rgb, background(element)];
    const key = [front, back].join("/");
    if (seen.has(key)) continue;
    seen.add(key);
    const ratio = contrast(front, back);
    require(ratio >= (isBar ? 3 : 4.5), `contrast ${ratio.toFixed(2)} in ${scheme}: ${name(element)}`);
  }
};
checkContrast("light");
for (const rule of document.styleSheets[0].cssRules)
  if (rule instanceof CSSMediaRule && rule.media.mediaText.includes("dark")) rule.media.mediaText = "all";
checkContrast("dark");
require(pages.size === 2, "one colour scheme only");

const result = document.createElement("pre");
result.id = "problems";
result.textContent = JSON.stringify(problems);
document.body.append(result);
