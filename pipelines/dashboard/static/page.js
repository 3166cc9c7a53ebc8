// The page is complete without this: it adds live updates, a cursor on charts, the slider of time, local times and keyboard shortcuts.
import { followBatches } from "./live.js";
import { addCursors } from "./cursor.js";
import { applyFilters } from "./filters.js";
import { showFocus } from "./focus.js";
import { addShortcuts } from "./shortcuts.js";
import { addSlider } from "./slider.js";
import { addTimes, writeTimes } from "./times.js";

followBatches(document, (part) => {
  addCursors(part);
  writeTimes(part);
});
addTimes(document);
addSlider(document);
applyFilters(document);
addCursors(document);
addShortcuts(document);
showFocus(document);
