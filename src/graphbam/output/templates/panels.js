// ── evidence for a pair or a variable ───────────────────────────────────────────────────────────────────────

const WORTH_DIRECTING = 0.2; // pairs less likely to be linked get no direction

function drawDetail(k = state.pair, n = state.node) {
  const children = k !== null ? describePair(k) : n !== null ? describeNode(n) : describeNothing();
  byId("detail").replaceChildren(...children);
}

function describeNothing() {
  return [make("h2", {}, "Evidence"), make("p", { class: "say" }, "Choose a link, a variable or a row of the table to see the data behind it.")];
}

function describePair(k) {
  const [first, second] = endsOf(k);
  const [a, b] = [names[first], names[second]];
  const step = (by) => make("button", { type: "button", class: "ghost", "aria-label": by > 0 ? "Next pair" : "Previous pair", onclick: () => pickPair(Math.min(Math.max(k + by, 0), pairs.i.length - 1)) }, by > 0 ? "›" : "‹");
  const title = make("h2", {}, spell(k));
  const parts = [make("div", { class: "bar" }, title, make("span", { style: "white-space:nowrap" }, step(-1), " ", step(1)))];
  parts.push(make("p", { class: "say" }, sentence(k)), ...drawSplit(k), ...drawChances(k, a, b), ...drawBehind(k, a, b));
  if (!sample) return [...parts, make("p", { class: "quiet" }, "This report holds no sample of the data, hence no scatter plots.")];
  const [x, y] = [sample[first], sample[second]];
  parts.push(drawFigure(`As measured · correlation ${signed(correlate(x, y))}`, x, y, a, b));
  if (names.length > 2) {
    const [u, v] = first === pairs.i[k] ? residuals(k) : residuals(k).reverse();
    parts.push(drawFigure(`Others removed by regression · correlation ${signed(correlate(u, v))}`, u, v, a, b));
  }
  return parts;
}

function drawFigure(caption, x, y, a, b) {
  return make("figure", {}, make("figcaption", {}, caption), drawScatter(x, y, a, b));
}

function sentence(k) {
  const p = pairs.skeleton[k];
  if (pairs.fixed[k]) return `This link is ${pairs.fixed[k]} by prior knowledge.`;
  if (p >= 0.9) return "Very likely a direct link.";
  if (p >= 0.5) return "Probably a direct link.";
  const child = pairs.via[k];
  if (isMoral(k)) {
    return child >= 0 ? `Probably not linked directly: both seem to act on ${flat(names[child])}.` : "Probably not linked directly, but through a common child.";
  }
  if (pairs.moral[k] > Math.max(p, 0.2)) return child >= 0 ? `Probably not linked; perhaps both act on ${flat(names[child])}.` : "Probably not linked; perhaps both act on a third.";
  return p >= 0.1 ? "A link is possible, but less likely than not." : "A link is unlikely.";
}

function drawSplit(k) {
  const [p, q] = [pairs.skeleton[k], pairs.moral[k]];
  const shares = [["direct", p, "var(--accent)"], ["common child", q, "var(--moral)"], ["none", Math.max(0, 1 - p - q), "var(--lone)"]];
  const [split, legend] = drawShares(shares);
  if (pairs.stability) legend.append(make("span", {}, "found in ", make("b", {}, percent(pairs.stability[k])), " of resamples"));
  return [split, legend];
}

/** Which way a link points, if there is one. */
function drawChances(k, a, b) {
  if (!pairs.forward || pairs.skeleton[k] < WORTH_DIRECTING) return [];
  const { there, back, open } = chancesOf(k);
  const [from, to] = tellApart([a, b], 14);
  const shares = [[`${from} → ${to}`, there, "var(--pick)"], ["open", open, "var(--lone)"], [`${to} → ${from}`, back, "var(--quiet)"]];
  return [make("p", { class: "say" }, "If there is a link, its direction:"), ...drawShares(shares), ...guessWay(k, a, b)];
}

/** Which way an open link would rather point, said as the guess that it is. */
function guessWay(k, a, b) {
  if (!pairs.way || (directionOf(k) && !isGuessed(k))) return [];
  const p = pairs.way[k];
  const [from, to, sure] = p >= 0.5 ? [a, b, p] : [b, a, 1 - p];
  const likelier = Math.max(pairs.forward[k], pairs.backward[k]);
  const since = likelier > 1 - pairs.forward[k] - pairs.backward[k] ? "The CPDAG leaves it open: its arrows are chosen together, and with caution." : "What depends on what fits the other way as well; in simulated worlds that look like this it is less likely.";
  return [make("p", { class: "quiet" }, `If one had to guess: ${flat(from)} → ${flat(to)} (${percent(sure)}). ${since}`)];
}

/** What else the weights say of a pair: something hidden, and who is upstream of whom. */
function drawBehind(k, a, b) {
  const said = [];
  if (pairs.hidden) said.push(`A hidden common cause of both: ${percent(pairs.hidden[k])}.`);
  if (pairs.upstream) {
    const [first, second] = endsOf(k);
    said.push(`A path of arrows, direct or not, from ${flat(a)} to ${flat(b)}: ${percent(upstreamOf(first, second))}; back: ${percent(upstreamOf(second, first))}.`);
  }
  return said.map((text) => make("p", { class: "say" }, text));
}

function drawShares(shares) {
  const split = make("div", { class: "split", role: "img", "aria-label": shares.map(([what, share]) => `${what} ${percent(share)}`).join(", ") });
  const legend = make("p", { class: "legend" });
  for (const [what, share, colour] of shares) {
    split.append(make("i", { style: `width:${100 * share}%;background:${colour}` }));
    legend.append(make("span", {}, make("i", { class: "swatch", style: `background:${colour}` }), `${what} `, make("b", {}, percent(share))));
  }
  return [split, legend];
}

function describeNode(n) {
  const found = [];
  for (let k = 0; k < pairs.i.length && found.length < 12; k++) {
    if ((pairs.i[k] === n || pairs.j[k] === n) && (isShown(k) || found.length < 5)) found.push(k);
  }
  const list = make("ul", { class: "list" });
  for (const k of found) {
    const [first, second] = endsOf(k);
    const other = flat(names[first === n ? second : first]);
    const arrow = directionOf(k) ? (first === n ? "→ " : "← ") : "";
    const button = make("button", { type: "button", onclick: () => pickPair(k) }, make("span", {}, arrow + other), make("b", {}, pairs.skeleton[k].toFixed(2)));
    list.append(make("li", {}, button));
  }
  return [make("h2", {}, flat(names[n])), make("p", { class: "say" }, `${count(degreeOf(n), "link")} shown; likeliest neighbours:`), list, ...describeStream(n)];
}

/** What is rather upstream and downstream of a variable than not. */
function describeStream(n) {
  if (!pairs.upstream) return [];
  const others = names.map((_, m) => m).filter((m) => m !== n);
  const say = (title, chance) => {
    const found = others.filter((m) => chance(m) >= 0.5).sort((m, l) => chance(l) - chance(m));
    const shown = found.slice(0, 12).map((m) => `${flat(names[m])} ${chance(m).toFixed(2)}`).join(", ");
    return make("p", { class: "say" }, `${title}: ${shown || "nothing likely"}${found.length > 12 ? ` and ${found.length - 12} more` : ""}.`);
  };
  return [say("Upstream of it", (m) => upstreamOf(m, n)), say("Downstream of it", (m) => upstreamOf(n, m))];
}

// ── the table ───────────────────────────────────────────────────────────────────────────────────────────────

const COLUMNS = [
  { title: "Variable", value: (k) => flat(names[pairs.i[k]]) },
  { title: "Variable", value: (k) => flat(names[pairs.j[k]]) },
  { title: "Direct", value: (k) => pairs.skeleton[k], isNumber: true, hasMeter: true },
  { title: "Moral", value: (k) => pairs.moral[k], isNumber: true },
  { title: "Common child?", value: (k) => (pairs.via[k] >= 0 ? flat(names[pairs.via[k]]) : "") },
  ...(pairs.hidden ? [{ title: "Hidden cause", value: (k) => pairs.hidden[k], isNumber: true }] : []),
  ...(pairs.stability ? [{ title: "Stability", value: (k) => pairs.stability[k], isNumber: true }] : []),
  ...(pairs.partial ? [{ title: "Partial r", value: (k) => pairs.partial[k], isNumber: true }] : []),
];
const ROWS = 100;
const table = { order: pairs.i.map((_, k) => k), column: 2, isRising: false, nShown: ROWS };

function drawHead() {
  byId("head").replaceChildren(...COLUMNS.map((column, c) => {
    const isSorted = table.column === c;
    const arrow = isSorted ? (table.isRising ? " ↑" : " ↓") : "";
    const button = make("button", { type: "button", onclick: () => sortBy(c) }, column.title + arrow);
    return make("th", { scope: "col", class: column.isNumber ? "number" : null, "aria-sort": isSorted ? (table.isRising ? "ascending" : "descending") : "none" }, button);
  }));
}

function sortBy(c) {
  table.isRising = table.column === c ? !table.isRising : !COLUMNS[c].isNumber;
  table.column = c;
  drawHead();
  drawRows();
}

function listRows() {
  const wanted = byId("search").value.trim().toLowerCase();
  const has = (n) => names[n].toLowerCase().includes(wanted);
  const rows = wanted ? table.order.filter((k) => has(pairs.i[k]) || has(pairs.j[k])) : [...table.order];
  const { value, isNumber } = COLUMNS[table.column];
  const direction = table.isRising ? 1 : -1;
  return rows.sort((a, b) => direction * (isNumber ? value(a) - value(b) : value(a).localeCompare(value(b))) || a - b);
}

function drawRows() {
  const rows = listRows();
  byId("rows").replaceChildren(...rows.slice(0, table.nShown).map(drawRow));
  byId("shown").textContent = `${Math.min(table.nShown, rows.length).toLocaleString("en")} of ${count(rows.length, "pair")}${model.n_pairs > pairs.i.length ? `; the ${(model.n_pairs - pairs.i.length).toLocaleString("en")} least likely pairs are left out here, and are in edges.csv` : ""}`;
  byId("more").hidden = rows.length <= table.nShown;
}

function drawRow(k) {
  const cells = COLUMNS.map((column) => {
    const value = column.value(k);
    if (!column.isNumber) return make("td", { title: value }, value);
    const meter = column.hasMeter ? make("span", { class: "meter" }, make("i", { style: `width:${100 * value}%` })) : null;
    return make("td", { class: "number" }, meter, signed(value));
  });
  if (pairs.fixed[k]) cells[1].append(make("span", { class: "tag" }, pairs.fixed[k]));
  const row = makeRow(k, cells);
  row.classList.toggle("below", !isShown(k));
  return row;
}

/** A row that stands for a pair: it marks the pair in the graph, and shows its evidence when chosen. */
function makeRow(k, cells) {
  const row = make("tr", { tabindex: 0, "data-pair": k }, ...cells);
  row.classList.toggle("picked", k === state.pair);
  row.addEventListener("click", () => pickPair(k));
  row.addEventListener("pointerenter", () => mark(k, null));
  row.addEventListener("pointerleave", () => mark(state.pair, state.node));
  row.addEventListener("keydown", (event) => steerRow(event, row, k));
  return row;
}

function steerRow(event, row, k) {
  const next = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
  if (event.key !== "Enter" && event.key !== " " && !next) return;
  event.preventDefault();
  if (next) next.focus();
  else pickPair(k);
}

// ── the graph as a table ────────────────────────────────────────────────────────────────────────────────────

/** Links of the graph with directions: arrows first, then those left open, the likeliest of each first. */
function drawArrows() {
  if (state.view === "links") return;
  const links = [...graphShown().pairs];
  const worth = (k) => (directionOf(k) ? 1 + pairs.skeleton[k] * chancesOf(k).there : pairs.skeleton[k]);
  byId("arrow-rows").replaceChildren(...links.sort((k, m) => worth(m) - worth(k) || k - m).map(drawArrow));
}

function drawArrow(k) {
  const [a, b] = endsOf(k).map((n) => flat(names[n]));
  const { there, back, open } = chancesOf(k);
  const meter = make("span", { class: "meter" }, make("i", { style: `width:${100 * there}%` }));
  const ends = [make("td", { title: a }, a), make("td", {}, directionOf(k) ? "→" : "—"), make("td", { title: b }, b)];
  const numbers = [pairs.skeleton[k], there, open, back].map((p) => make("td", { class: "number" }, p.toFixed(2)));
  if (directionOf(k)) numbers[1].prepend(meter);
  for (const [is, word] of [[isForced(k), "forced"], [isGuessed(k), "a guess"]]) if (is) ends[2].append(make("span", { class: "tag" }, word));
  return makeRow(k, [...ends, ...numbers]);
}

// ── the other cards ─────────────────────────────────────────────────────────────────────────────────────────

function drawCards() {
  const read = model.n_rows_read && model.n_rows_read !== model.n_rows ? ` of ${model.n_rows_read.toLocaleString("en")}` : "";
  const rows = model.n_rows ? ` · ${count(model.n_rows, "row").replace(" ", `${read} `)}` : "";
  byId("facts").textContent = `${count(names.length, "variable")}${rows} · ${count(model.n_pairs, "pair")}`;
  fillList("warnings", model.warnings, "");
  byId("mind").hidden = !model.warnings.length;
  fillList("changes", model.changes, "Nothing but a common scale for all columns.");
  drawMeter();
  for (const [label, value] of model.provenance) {
    byId("provenance").append(make("dt", {}, label), make("dd", {}, value));
  }
  byId("provenance").append(...model.calls.map((call) => make("pre", {}, call)));
  byId("privacy").textContent = sample
    ? `Privacy: this file holds a sample of the data, ${count(sample[0].length, "row")} in standard units, for the scatter plots. Whoever has the file has the sample.`
    : "This file holds no rows of the table.";
}

function fillList(id, sentences, otherwise) {
  const list = byId(id);
  list.classList.toggle("plain", !sentences.length);
  list.append(...(sentences.length ? sentences : [otherwise]).map((text) => make("li", {}, text)));
}

function drawMeter() {
  const meter = byId("meter");
  const said = { inside: "Yes, in everything measured here.", outside: "Not in every respect; probabilities may be off." };
  const verdict = said[model.domain.verdict] || "These weights do not say what their training tables looked like.";
  meter.append(make("p", { class: `verdict ${model.domain.verdict || ""}` }, verdict));
  for (const { label, value, low, high, outside } of model.domain.features) {
    const [from, to] = [Math.min(low, value), Math.max(high, value)];
    const place = (v) => 4 + (92 * (v - from)) / (to - from || 1);
    const track = make("div", { class: "track" });
    track.append(make("i", { style: `left:${place(low)}%;width:${place(high) - place(low)}%` }), make("b", { style: `left:${place(value)}%` }));
    const number = Number(value.toPrecision(3)).toLocaleString("en");
    meter.append(make("div", { class: outside ? "gauge outside" : "gauge" }, make("span", {}, label), make("span", {}, number), track));
  }
}

function drawSure() {
  byId("histogram").replaceChildren(drawHistogram());
  const body = make("tbody", {}, ...model.levels.map(({ fdr, threshold, links }) =>
    make("tr", {}, make("td", {}, `at most ${percent(fdr)}`), make("td", { class: "number" }, links ? threshold.toFixed(2) : "–"), make("td", { class: "number" }, links.toLocaleString("en")))));
  const head = make("tr", {}, ...["Expected false", "p ≥", "Links"].map((title, c) => make("th", { scope: "col", class: c ? "number" : null }, title)));
  byId("targets").replaceChildren(make("table", {}, make("thead", {}, head), body));
}
