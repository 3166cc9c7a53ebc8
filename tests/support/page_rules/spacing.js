// The text spacing of WCAG 1.4.12, which readers may set.

const SPACING = new CSSStyleSheet();
SPACING.replaceSync(`
  :not(svg, svg *) { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important; }
  p { margin-bottom: 2em !important; }
`);

/** Elements whose text does not fit. */
function cutOff() {
  return [...document.body.querySelectorAll('*')].filter((element) => {
    if (element.closest('svg') || !isShown(element) || !textOf(element)) return false;
    const style = getComputedStyle(element);
    const cuts = (overflow) => ['hidden', 'clip'].includes(overflow);
    return (
      (cuts(style.overflowX) && element.scrollWidth > element.clientWidth + 1) ||
      (cuts(style.overflowY) && element.scrollHeight > element.clientHeight + 1)
    );
  });
}

function spacing() {
  const before = new Set(cutOff());
  const width = document.documentElement.scrollWidth;
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, SPACING];
  const findings = cutOff().filter((each) => !before.has(each)).map((each) => `${nameOf(each)} is cut off with more space in text`);
  const wider = document.documentElement.scrollWidth;
  if (wider > innerWidth && wider > width) findings.push(`the page is ${wider} px wide with more space in text`);
  document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== SPACING);
  return findings;
}
