// What can be read without a pointer, and units of numbers.

/** Text that can be read without a pointer: what is shown, and what a closed <details> shows when it is opened. */
function readableText() {
  const parts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent.closest('script, style, template, noscript, svg title, svg desc')) continue;
    if (isShown(parent) || parent.closest('details:not([open])') || parent.closest('table, svg')) parts.push(walker.currentNode.data);
  }
  return parts.join(' ').replace(/\s+/g, ' ');
}

function hover() {
  const findings = [];
  const text = readableText();
  for (const element of document.querySelectorAll('[title]')) {
    const title = element.getAttribute('title').replace(/\s+/g, ' ').trim();
    if (title && !text.includes(title)) findings.push(`only on hover: title="${title}" of ${nameOf(element)}`);
  }
  // a tooltip inside of a chart repeats numbers of the chart's table, in words of its own
  const numbersOf = (words) => words.match(/\d([\d.,:]*\d)?/g) || [];
  const numbers = new Set(numbersOf(text));
  for (const title of document.querySelectorAll('svg :not(svg) > title')) {
    const missing = numbersOf(textOf(title)).filter((each) => !numbers.has(each));
    if (missing.length) findings.push(`only on hover: ${missing.join(', ')} of "${textOf(title)}" in a chart`);
  }
  return [...findings, ...hoverStyles()];
}

/** Styles that show something under the pointer and not with the focus. */
function hoverStyles() {
  const findings = [];
  const visit = (rules) => {
    for (const rule of rules) {
      if (rule.cssRules && rule.cssRules.length) visit(rule.cssRules);
      if (!rule.selectorText || !rule.selectorText.includes(':hover') || rule.selectorText.includes(':focus')) continue;
      const shows = ['display', 'visibility', 'opacity', 'content'].filter((each) => rule.style.getPropertyValue(each));
      if (shows.length) findings.push(`only on hover: ${shows.join(', ')} of ${rule.selectorText}`);
    }
  };
  for (const sheet of document.styleSheets) visit(sheet.cssRules);
  return findings;
}

/** Heads of a cell's column and row. */
function headsOf(cell) {
  const table = cell.closest('table');
  const column = columnOf(cell);
  const above = [...table.rows].slice(0, cell.parentElement.rowIndex).flatMap((row) => [...row.cells]);
  const heads = above.filter((each) => each.tagName === 'TH' && columnOf(each) <= column && column < columnOf(each) + each.colSpan);
  return [...heads, ...[...cell.parentElement.cells].filter((each) => each.tagName === 'TH')];
}

function columnOf(cell) {
  let column = 0;
  for (let each = cell.previousElementSibling; each; each = each.previousElementSibling) column += each.colSpan;
  return column;
}

/** True if a head shows the unit of its cells: in parentheses, or as the word that `data-unit` names, written or added by CSS. */
function showsUnit(head) {
  const shown = `${textOf(head)} ${getComputedStyle(head, '::after').content}`.toLowerCase();
  const unit = (head.dataset.unit || '').toLowerCase();
  return unit ? shown.includes(unit) : /\([^)]*\p{L}[^)]*\)/u.test(shown);
}

/** The column of a cell for messages, or the element itself. */
function placeOf(element, heads) {
  const column = heads.find((each) => each.closest('thead'));
  return column ? `the column ${nameOf(column)} of ${nameOf(column.closest('table'))}` : nameOf(element);
}

function units() {
  const findings = new Map();
  const report = (place, what, text) => findings.has(place + what) || findings.set(place + what, `${place} ${what}: "${text}"`);
  for (const element of document.querySelectorAll('.number')) {
    const text = textOf(element);
    if (!/\d/.test(text) || element.tagName === 'TH') continue;
    const heads = element.tagName === 'TD' ? headsOf(element) : [];
    const place = placeOf(element, heads);
    if (!/\d\s*(\p{L}|%|[/])/u.test(text) && !heads.some(showsUnit)) report(place, 'has no unit', text);
    const style = getComputedStyle(element);
    if (!style.fontVariantNumeric.includes('tabular-nums')) report(place, 'has no tabular figures', text);
    if (element.tagName === 'TD' && !['right', 'end'].includes(style.textAlign)) report(place, 'is not aligned right', text);
  }
  for (const cell of document.querySelectorAll('td:not(.number, .identifier)')) {
    if (!/^[+−-]?\d[\d.,]*$/.test(textOf(cell))) continue;
    report(placeOf(cell, headsOf(cell)), 'has neither the class number nor identifier', textOf(cell));
  }
  return [...findings.values()];
}
