// Sizes and places of boxes.

function reflow() {
  const findings = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > innerWidth) {
    findings.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${innerWidth} px`);
  }
  const wide = [...document.body.querySelectorAll('*')].filter((element) => {
    if (element.ownerSVGElement || !isShown(element) || scrollerOf(element)) return false;
    const box = element.getBoundingClientRect();
    return box.right > width + 1 && box.left < width;
  });
  const inner = wide.filter((element) => !wide.some((other) => other !== element && element.contains(other)));
  findings.push(...inner.slice(0, 5).map((each) => `${nameOf(each)} ends at ${Math.round(each.getBoundingClientRect().right)} px`));
  return findings;
}

function scrollRegions() {
  const findings = [];
  for (const element of document.body.querySelectorAll('*')) {
    if (!['auto', 'scroll'].includes(getComputedStyle(element).overflowX)) continue;
    if (element.scrollWidth <= element.clientWidth + 1 || !isShown(element)) continue;
    if (element.tabIndex < 0 || !element.hasAttribute('tabindex')) findings.push(`${nameOf(element)} scrolls and cannot have the focus`);
    if (!accessibleName(element)) findings.push(`${nameOf(element)} scrolls and has no label`);
    if (!element.getAttribute('role') && element.tagName !== 'SECTION') findings.push(`${nameOf(element)} scrolls and has no role`);
  }
  return findings;
}

/** True for a link in a sentence, whose size is that of its line (WCAG 2.5.8, inline). */
function isInline(element) {
  if (element.tagName !== 'A' || !getComputedStyle(element).display.startsWith('inline')) return false;
  const block = element.closest('p, li, dd, dt, td, th, figcaption, caption, h1, h2, h3, h4');
  if (!block) return false;
  const links = [...block.querySelectorAll('a')].map(textOf).join('').replace(/\s/g, '').length;
  return textOf(block).replace(/[\s·|,;:→>/]/g, '').length > links;
}

function hasEquivalent(element) {
  if (!element.closest('svg')) return false;
  const href = element.getAttribute('href');
  return [...document.querySelectorAll('a[href]')].some((each) => !each.closest('svg') && each.getAttribute('href') === href);
}

function targets(minimum) {
  const findings = [];
  for (const element of controls()) {
    if (!isShown(element) || isInline(element) || hasEquivalent(element)) continue;
    const box = element.getBoundingClientRect();
    if (box.right < 0 || box.bottom + scrollY < 0) continue;
    let [width, height] = [box.width, box.height];
    for (const label of element.labels || []) {
      const around = label.getBoundingClientRect();
      if (label.contains(element)) [width, height] = [Math.max(width, around.width), Math.max(height, around.height)];
    }
    if (width < minimum - 0.5 || height < minimum - 0.5) {
      findings.push(`${nameOf(element)} is ${Math.round(width)} × ${Math.round(height)} px, less than ${minimum} × ${minimum}`);
    }
  }
  return findings;
}

/** The smallest size of text in charts, which shrink with the window. */
const SMALLEST_TEXT_PX = 10;

function chartTexts() {
  const findings = [];
  const overlap = (one, two) =>
    Math.min(one.right, two.right) - Math.max(one.left, two.left) > 1 && Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top) > 1;
  for (const drawing of document.querySelectorAll('svg')) {
    if (drawing.ownerSVGElement) continue;
    const frame = drawing.getBoundingClientRect();
    const texts = [...drawing.querySelectorAll('text')].filter((each) => textOf(each) && isShown(each)).map((each) => ({
      name: textOf(each).slice(0, 40),
      size: parseFloat(getComputedStyle(each).fontSize) * Math.abs(each.getScreenCTM().d || each.getScreenCTM().c),
      box: inkOf(each),
    }));
    const smallest = texts.reduce((one, two) => (two.size < one.size ? two : one), { size: Infinity });
    if (smallest.size < SMALLEST_TEXT_PX - 0.5) {
      findings.push(`"${smallest.name}" in ${nameOf(drawing)} has ${smallest.size.toFixed(1)} px, less than ${SMALLEST_TEXT_PX} px`);
    }
    texts.forEach(({ name, box }, index) => {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
        findings.push(`"${name}" is cut off at the edge of ${nameOf(drawing)}`);
      }
      for (const other of texts.slice(index + 1)) {
        if (overlap(box, other.box)) findings.push(`"${name}" overlaps "${other.name}" in ${nameOf(drawing)}`);
      }
    });
  }
  return findings;
}

/** The box of a text without the empty space of its font above and below the letters. */
function inkOf(element) {
  const box = element.getBoundingClientRect();
  const space = box.height * 0.15;
  return { left: box.left, right: box.right, top: box.top + space, bottom: box.bottom - space };
}
