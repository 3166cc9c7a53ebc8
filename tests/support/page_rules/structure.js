// Headings, titles, tables and charts.

function outline() {
  const findings = [];
  if (!document.documentElement.lang) findings.push('<html> has no lang');
  if (!document.title.trim()) findings.push('the page has no title');
  const headings = [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].filter((each) => each.checkVisibility());
  const first = headings.filter((each) => each.tagName === 'H1').length;
  if (first !== 1) findings.push(`the page has ${first} h1, not one`);
  let level = 0;
  for (const each of headings) {
    const next = Number(each.tagName[1]);
    if (next > level + 1) findings.push(`${nameOf(each)} follows ${level ? `an h${level}` : 'no heading'}`);
    level = next;
  }
  if (document.querySelectorAll('main').length !== 1) findings.push('the page has no main, or several');
  return findings;
}

function skipLink() {
  const first = controls()[0];
  const href = first ? first.getAttribute('href') || '' : '';
  if (!href.startsWith('#') || href.length < 2) return [`the first control is no skip link: ${first ? nameOf(first) : 'none'}`];
  const target = document.getElementById(decodeURIComponent(href.slice(1)));
  if (!target) return [`the skip link leads to ${href}, which the page does not have`];
  return target.closest('main') ? [] : [`the skip link leads to ${nameOf(target)}, which is not in main`];
}

function tables() {
  const findings = [];
  for (const table of document.querySelectorAll('table')) {
    if (!table.caption || !textOf(table.caption)) findings.push(`${nameOf(table)} has no caption`);
    const heads = [...table.querySelectorAll('th')];
    if (!heads.length) findings.push(`${nameOf(table)} has no th`);
    for (const head of heads) {
      if (!head.getAttribute('scope')) findings.push(`${nameOf(head)} has no scope`);
    }
    const sortable = heads.filter((head) => head.closest('thead') && head.querySelector('a[href*="sort="], button'));
    const sorted = heads.filter((head) => ['ascending', 'descending'].includes(head.getAttribute('aria-sort')));
    if (sortable.length && sorted.length !== 1) {
      findings.push(`${nameOf(table)} can be sorted, and ${sorted.length} of its columns have aria-sort, not one`);
    }
  }
  return findings;
}

/** Drawings that are no chart: icons, sparklines in a row of a table that has the numbers, marks that a slider names. */
function isDecoration(drawing) {
  if (drawing.getAttribute('aria-hidden') !== 'true') return false;
  if (isNamedBySlider(drawing)) return true;
  const box = drawing.getBoundingClientRect();
  const row = drawing.closest('tr');
  return (box.width <= 32 && box.height <= 32) || (row !== null && /\d/.test(textOf(row)));
}

/** Marks before a slider that has the time and the words of each one, which it says when its keys lead there. */
function isNamedBySlider(drawing) {
  const slider = drawing.nextElementSibling;
  if (!slider?.matches('input[type=range][data-events]')) return false;
  const events = JSON.parse(slider.dataset.events);
  return events.length === drawing.querySelectorAll('path').length && events.every(([, words]) => words);
}

/** Rows of the chart's data: in its figure, in a figure around several charts, or where `aria-details` leads. */
function dataRows(drawing) {
  const rowsIn = (element) => [...element.querySelectorAll('tr')].filter((row) => row.querySelector('td'));
  const rows = [];
  for (let each = drawing; each; each = each.parentElement) {
    const details = document.getElementById(each.getAttribute('aria-details') || '');
    if (details) rows.push(...rowsIn(details));
    if (each.tagName === 'FIGURE') rows.push(...rowsIn(each));
  }
  return rows;
}

function charts() {
  const findings = [];
  for (const drawing of document.querySelectorAll('svg, canvas')) {
    if (drawing.parentElement.closest('svg') || !drawing.checkVisibility() || isDecoration(drawing)) continue;
    const figure = drawing.closest('figure');
    if (!figure) {
      findings.push(`${nameOf(drawing)} is a chart outside of a figure`);
      continue;
    }
    const caption = figure.querySelector('figcaption');
    if (!caption || !textOf(caption)) findings.push(`${nameOf(figure)} has no figcaption`);
    const image = drawing.closest('[role=img]');
    const summary = image && figure.contains(image) ? accessibleName(image) : '';
    if (!summary) findings.push(`the chart of ${nameOf(figure)} has no role="img" with a summary`);
    else if (!/\d/.test(summary)) findings.push(`the summary of a chart has no number: "${summary}"`);
    if (!dataRows(drawing).length) findings.push(`${nameOf(figure)} has no table of its data`);
  }
  return findings;
}
