// Functions that several rules use.

const CONTROLS = [
  'a[href]', 'area[href]', 'button', 'input:not([type=hidden])', 'select', 'textarea', 'summary', '[contenteditable=true]',
  '[tabindex]:not([tabindex^="-"])', '[role=button]', '[role=link]', '[role=checkbox]', '[role=switch]', '[role=tab]',
].join(', ');

/** A short name of an element for messages: its tag, id or class, and the beginning of its text. */
function nameOf(element) {
  const id = element.id ? `#${element.id}` : '';
  const first = element.classList.length && !id ? `.${element.classList[0]}` : '';
  const text = (element.getAttribute('aria-label') || element.textContent || '').replace(/\s+/g, ' ').trim().slice(0, 40);
  return `<${element.tagName.toLowerCase()}${id}${first}>${text ? ` "${text}"` : ''}`;
}

function textOf(element) {
  return element.textContent.replace(/\s+/g, ' ').trim();
}

/** True for an element that is rendered with a size. A hidden element for screen readers has one pixel. */
function isShown(element) {
  const box = element.getBoundingClientRect();
  return box.width > 1 && box.height > 1 && element.checkVisibility({ checkVisibilityCSS: true });
}

/** Controls that a keyboard must reach. */
function controls() {
  return [...document.querySelectorAll(CONTROLS)].filter((element) => {
    if (element.disabled || element.closest('[inert]')) return false;
    return element.checkVisibility({ checkVisibilityCSS: true }) && element.getClientRects().length > 0;
  });
}

/** Red, green, blue and opacity of a computed colour. */
function parsedColor(text) {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.fillStyle = text;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data];
}

function luminance([red, green, blue]) {
  const [r, g, b] = [red, green, blue].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, two) {
  const [light, dark] = [luminance(one), luminance(two)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

/** The opaque colour behind an element. */
function backgroundBehind(element) {
  for (let each = element.parentElement; each; each = each.parentElement) {
    const color = parsedColor(getComputedStyle(each).backgroundColor);
    if (color[3] === 255) return color;
  }
  return parsedColor('Canvas');
}

/** The nearest ancestor that scrolls horizontally. */
function scrollerOf(element) {
  for (let each = element.parentElement; each && each !== document.documentElement; each = each.parentElement) {
    if (each !== document.body && ['auto', 'scroll'].includes(getComputedStyle(each).overflowX)) return each;
  }
  return null;
}

function accessibleName(element) {
  const ids = (element.getAttribute('aria-labelledby') || '').split(/\s+/).filter(Boolean);
  const labels = ids.map((id) => document.getElementById(id)).filter(Boolean).map(textOf);
  if (labels.length) return labels.join(' ');
  if (element.getAttribute('aria-label')) return element.getAttribute('aria-label').trim();
  const title = element.querySelector(':scope > title');
  return title ? textOf(title) : '';
}
