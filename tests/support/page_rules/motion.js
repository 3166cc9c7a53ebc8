// Movement for readers who asked for none.

function motion() {
  const findings = [];
  const lasts = (text) => text.split(',').some((each) => parseFloat(each) * (each.trim().endsWith('ms') ? 1 : 1000) > 1);
  for (const element of document.querySelectorAll('*')) {
    for (const part of ['', '::before', '::after']) {
      const style = getComputedStyle(element, part || null);
      if (lasts(style.transitionDuration)) findings.push(`${nameOf(element)}${part} has a transition of ${style.transitionDuration}`);
      if (style.animationName !== 'none' && lasts(style.animationDuration)) {
        findings.push(`${nameOf(element)}${part} has an animation of ${style.animationDuration}`);
      }
      if (!part && style.scrollBehavior === 'smooth') findings.push(`${nameOf(element)} scrolls smoothly`);
    }
  }
  return findings;
}
