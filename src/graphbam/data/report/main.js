// ── what happens when ───────────────────────────────────────────────────────────────────────────────────────

const SLIDER_LOW = Math.max(0.02, Math.ceil(100 * model.floor) / 100);

function setThreshold(threshold) {
  state.threshold = Math.min(1, Math.max(SLIDER_LOW, threshold));
  byId("threshold").value = state.threshold;
  byId("cut").textContent = state.threshold.toFixed(2);
  const nLinks = countLinks();
  const wrong = expectFalse(nLinks);
  byId("n-links").textContent = count(nLinks, "link");
  byId("n-false").textContent = nLinks ? `${wrong < 0.1 ? "< 0.1" : wrong.toFixed(1)} expected false (${percent(wrong / nLinks)})` : "none is that likely";
  byId("n-moral").textContent = listMoral().length.toLocaleString("en");
  for (const chip of byId("levels").querySelectorAll("button")) {
    chip.setAttribute("aria-pressed", Math.abs(Number(chip.dataset.threshold) - state.threshold) < 1e-9);
  }
  buildEdges();
  redraw();
  mark(state.pair, state.node);
  drawSure();
  for (const row of byId("rows").children) row.classList.toggle("below", pairs.skeleton[row.dataset.pair] < state.threshold);
}

function pickPair(k) {
  [state.pair, state.node] = [k, null];
  mark(k, null);
  drawDetail();
  for (const row of byId("rows").children) row.classList.toggle("picked", Number(row.dataset.pair) === k && k !== null);
}

function pickNode(n) {
  const same = state.node === n;
  [state.pair, state.node] = [null, same ? null : n];
  mark(null, state.node);
  drawDetail();
}

/** Show a pair while the pointer is on it, and what was chosen before when it leaves. */
function showPair(k) {
  drawDetail(k ?? state.pair, k === null ? state.node : null);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("graphbam-theme", theme);
  } catch {
    // private windows keep nothing
  }
}

function startTheme() {
  try {
    const theme = localStorage.getItem("graphbam-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // as above
  }
  byId("theme").addEventListener("click", () => {
    const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
    setTheme(isDark ? "light" : "dark");
  });
}

function startLevels() {
  const levels = byId("levels");
  levels.append("Expected false");
  for (const { fdr, threshold, links } of model.levels) {
    if (!links || threshold < SLIDER_LOW) continue;
    levels.append(make("button", { type: "button", "data-threshold": threshold, title: `The most links of which at most ${percent(fdr)} are expected to be false`, onclick: () => setThreshold(threshold) }, `≤ ${percent(fdr)}`));
  }
  levels.hidden = !levels.querySelector("button");
}

function startGraph() {
  buildNodes();
  buildEdges();
  fit();
  if (boxed) goHome();
  svg.addEventListener("pointerdown", startPan);
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !byId("graph").contains(document.activeElement)) return;
    event.preventDefault();
    const frame = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });
  svg.addEventListener("keydown", (event) => {
    const act = { "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => refit(), Escape: () => pickPair(null) }[event.key];
    const shift = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    if (!act && !shift) return;
    event.preventDefault();
    if (act) return act();
    view.x += shift[0];
    view.y += shift[1];
    redraw();
  });
  byId("zoom-in").addEventListener("click", () => zoom(1.3));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 1.3));
  byId("fit").addEventListener("click", () => refit());
  byId("arrange").addEventListener("click", arrange);
  byId("reset").addEventListener("click", reset);
  new ResizeObserver(() => refit()).observe(svg);
  window.addEventListener("beforeprint", () => refit(PAPER));
  window.addEventListener("afterprint", () => refit());
}

function refit(frame) {
  fit(frame);
  redraw();
}

function start() {
  startTheme();
  drawCards();
  drawHead();
  startLevels();
  startGraph();
  byId("threshold").min = SLIDER_LOW;
  byId("threshold").addEventListener("input", (event) => setThreshold(Number(event.target.value)));
  byId("moral").addEventListener("change", (event) => {
    state.moral = event.target.checked;
    setThreshold(state.threshold);
  });
  byId("search").addEventListener("input", () => {
    table.nShown = ROWS;
    drawRows();
  });
  byId("more").addEventListener("click", () => {
    table.nShown += 4 * ROWS;
    drawRows();
  });
  setThreshold(model.threshold);
  drawRows();
  if (pairs.i.length) pickPair(0);
  else drawDetail();
}

start();
