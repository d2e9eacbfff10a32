// ── what happens when ───────────────────────────────────────────────────────────────────────────────────────

const SLIDER_LOW = Math.max(0.02, Math.ceil(100 * model.floor) / 100);

function setThreshold(threshold) {
  state.threshold = Math.min(1, Math.max(SLIDER_LOW, threshold));
  byId("threshold").value = state.threshold;
  byId("cut").textContent = state.threshold.toFixed(2);
  for (const chip of byId("levels").querySelectorAll("button")) {
    chip.setAttribute("aria-pressed", Math.abs(Number(chip.dataset.threshold) - state.threshold) < 1e-9);
  }
  refresh();
}

/** Show the directions that data decide (cpdag), a direction for every link (dag), or links by probability (links). */
function setView(view, n = state.graph) {
  [state.view, state.graph] = [view, n];
  refresh();
  drawDetail();
}

/** Draw everything that depends on which links are shown. */
function refresh() {
  sayView();
  redraw();
  drawSure();
  drawArrows();
  for (const row of byId("rows").children) row.classList.toggle("below", !isShown(Number(row.dataset.pair)));
}

function sayView() {
  const links = listLinks();
  const [wrong, hasDirections] = [expectFalse(links), state.view !== "links"];
  byId("n-links").textContent = count(links.length, "link");
  const missed = `${few(expectMissed(links))} expected missed`;
  byId("n-false").textContent = links.length ? `${few(wrong)} expected false (${percent(wrong / links.length)}), ${missed}` : `none is that likely, ${missed}`;
  byId("n-moral").textContent = listMoral().length.toLocaleString("en");
  byId("n-hidden").textContent = listHidden().length.toLocaleString("en");
  const guesses = links.filter(isGuessed).length;
  byId("n-arrows").textContent = hasDirections ? `, ${links.filter(directionOf).length} with a direction${guesses ? `, ${guesses} of them guessed` : ""}` : "";
  for (const id of ["dial", "levels"]) byId(id).hidden = hasDirections;
  for (const id of ["how", "choices", "arrows"]) byId(id).hidden = !hasDirections;
  for (const [id, view] of Object.entries(VIEWS)) byId(id).setAttribute("aria-pressed", state.view === view);
  if (!hasDirections) return;
  byId("how").textContent = sayChoice(graphShown());
  byId("choices").querySelectorAll("button").forEach((chip, n) => chip.setAttribute("aria-pressed", n === state.graph));
}

function sayChoice({ threshold, fdr, notes }) {
  const more = notes.map((note) => ` ${note[0].toUpperCase()}${note.slice(1)}.`).join("");
  if (fdr !== null) return `As many links as possible with at most ${percent(fdr)} expected false.${more}`;
  if (threshold !== null) return `All links with probability ${threshold} or more.${more}`;
  return `The graph with the fewest expected wrong edges.${more}`;
}

function pickPair(k) {
  [state.pair, state.node] = [k, null];
  mark(k, null);
  sayFocus();
  drawDetail();
  for (const row of document.querySelectorAll("tr[data-pair]")) row.classList.toggle("picked", Number(row.dataset.pair) === k && k !== null);
}

function pickNode(n) {
  const same = state.node === n && !state.focus;
  [state.pair, state.node] = [null, same ? null : n];
  mark(null, state.node);
  sayFocus();
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
  cy.style(listStyles());
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => cy.style(listStyles()));
}

function startLevels() {
  const levels = byId("levels");
  levels.append("Expected false");
  for (const { fdr, threshold, links } of model.levels) {
    if (!links || threshold < SLIDER_LOW) continue;
    levels.append(make("button", { type: "button", "data-threshold": threshold, title: `As many links as possible with at most ${percent(fdr)} expected false`, onclick: () => setThreshold(threshold) }, `≤ ${percent(fdr)}`));
  }
  if (levels.children.length === 0) levels.replaceChildren();
}

const VIEWS = { "view-directions": "cpdag", "view-guesses": "dag", "view-links": "links" };

function startViews() {
  byId("views").hidden = !model.graphs.length;
  for (const [id, view] of Object.entries(VIEWS)) byId(id).addEventListener("click", () => setView(view));
  byId("choices").append("Graph");
  model.graphs.forEach((graph, n) => {
    const label = graph.fdr !== null ? `≤ ${percent(graph.fdr)}` : graph.threshold !== null ? `p ≥ ${graph.threshold}` : "nearest";
    byId("choices").append(make("button", { type: "button", title: sayChoice(graph), onclick: () => setView(state.view, n) }, label));
  });
}

function start() {
  startTheme();
  drawCards();
  drawHead();
  startViews();
  startLevels();
  startGraph();
  startDownloads();
  byId("threshold").min = SLIDER_LOW;
  byId("threshold").addEventListener("input", (event) => setThreshold(Number(event.target.value)));
  byId("hidden-row").hidden = !pairs.hidden;
  byId("hidden").addEventListener("change", (event) => {
    state.hidden = event.target.checked;
    refresh();
  });
  byId("moral").addEventListener("change", (event) => {
    state.moral = event.target.checked;
    refresh();
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
