// One stop of a walk through the page by Tab.

/** Number the controls that a keyboard must reach. The numbers are kept beside the page, not in it. */
function begin() {
  window.__controlNumbers = new Map(controls().map((element, index) => [element, index]));
  return [...window.__controlNumbers.keys()].map((element) => ({
    name: nameOf(element),
    order: element.tabIndex,
    composite: isInComposite(element),
  }));
}

/** True for the parts of a widget in which the arrow keys move, and for all but one button of a radio group. */
function isInComposite(element) {
  return element.type === 'radio' || element.closest('[role=tablist], [role=listbox], [role=menu], [role=radiogroup], [role=grid]') !== null;
}

/** Numbers of controls that a live page has replaced since. */
function replaced() {
  return [...window.__controlNumbers].filter(([element]) => !element.isConnected).map(([, number]) => number);
}

/** The element with the focus: its number, and what is wrong with it. */
function stop() {
  const element = document.activeElement;
  if (!element || element === document.body || element === document.documentElement) return null;
  return { number: window.__controlNumbers.get(element) ?? -1, name: nameOf(element), findings: [...focusFindings(element), ...placeFindings(element)] };
}

function focusFindings(element) {
  const style = getComputedStyle(element);
  const width = parseFloat(style.outlineWidth);
  if (style.outlineStyle === 'none' || width < 2) return [`${nameOf(element)} has the focus, and no outline of 2 px or more`];
  if (matchMedia('(forced-colors: active)').matches) return [];
  const inside = parseFloat(style.outlineOffset) < 0;
  const own = parsedColor(style.backgroundColor);
  const behind = inside && own[3] === 255 ? own : backgroundBehind(element);
  const ratio = contrast(parsedColor(style.outlineColor), behind);
  return ratio < 3 ? [`the outline of ${nameOf(element)} has a contrast of ${ratio.toFixed(1)}, less than 3`] : [];
}

function placeFindings(element) {
  const box = element.getClientRects().length > 1 ? element.getClientRects()[0] : element.getBoundingClientRect();
  const [left, right] = [Math.max(box.left, 0), Math.min(box.right, innerWidth)];
  const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
  if (right - left < Math.min(box.width, innerWidth) - 1 || bottom - top < Math.min(box.height, innerHeight / 2) - 1) {
    return [`${nameOf(element)} has the focus outside of the window`];
  }
  const points = [0.1, 0.5, 0.9].flatMap((x) => [0.1, 0.5, 0.9].map((y) => [left + x * (right - left), top + y * (bottom - top)]));
  const free = points.filter(([x, y]) => {
    const hit = document.elementFromPoint(x, y);
    return hit && (element.contains(hit) || [...(element.labels || [])].some((label) => label.contains(hit)));
  });
  // a link in a drawing may have holes
  const enough = element.closest('svg') ? 1 : 5;
  return free.length < enough ? [`${nameOf(element)} has the focus and is covered`] : [];
}
