// ── the model: what the page knows ──────────────────────────────────────────────────────────────────────────
// Pairs are ranked by their probability of a direct link, so the links above any threshold are the first few.
// Three views: one of the graphs with the directions that data decide (cpdag), the same with a direction for every link,
// guesses marked (dag), or the links above a threshold.

const model = JSON.parse(document.getElementById("model").textContent);
if (model.names.length >= 60) document.body.classList.add("many");
const { names, pairs } = model;
const byId = (id) => document.getElementById(id);
const state = { threshold: model.threshold, view: model.graphs.length ? "cpdag" : "links", graph: 0, moral: false, hidden: false, pair: null, node: null, focus: null };

/** Make an element; text goes in as text, never as markup. */
function make(tag, attributes = {}, ...children) {
  const isSvg = ["svg", "g", "path", "line", "rect", "circle", "text"].includes(tag);
  const element = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const count = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
const percent = (p) => `${Number((100 * p).toFixed(p < 0.1 ? 1 : 0))} %`;
const signed = (value) => value.toFixed(2).replace(/^-(?=0\.00$)/, "").replace("-", "−");
const flat = (name) => name.replace(/\s+/g, " ");

/** Cut a long name in its middle: names that begin alike often differ at the end. */
function shorten(name, limit = 20) {
  const letters = Array.from(flat(name));
  if (letters.length <= limit) return letters.join("");
  const tail = Math.floor(limit / 3);
  return `${letters.slice(0, limit - tail - 1).join("")}…${letters.slice(-tail).join("")}`;
}

/** Shorten names; those that would then read the same are cut less, as far as they need. */
function tellApart(list, limit = 20) {
  const longest = Math.max(0, ...list.map((name) => name.length));
  let labels = list.map((name) => shorten(name, limit));
  for (let most = limit + 5; most < longest + 5; most += 5) {
    const seen = new Map();
    for (const label of labels) seen.set(label, (seen.get(label) || 0) + 1);
    if (seen.size === labels.length) break;
    labels = labels.map((label, n) => (seen.get(label) > 1 ? shorten(list[n], most) : label));
  }
  return labels;
}

// ── directions ──────────────────────────────────────────────────────────────────────────────────────────────

/** Look up what a graph says of a pair without searching. */
const index = (graph) => ({ ...graph, marks: new Map(graph.pairs.map((k, n) => [k, graph.marks[n]])), forced: new Set(graph.forced), guessed: new Set(graph.guessed) });
const graphs = { cpdag: model.graphs.map(index), dag: model.dags.map(index) };

/** The graph with directions that is shown; null where links are shown by probability. */
const graphShown = () => (state.view === "links" ? null : graphs[state.view][state.graph]);

/** 1 for i → j, −1 for j → i, 0 for no direction, in the graph that is shown. */
const directionOf = (k) => (state.view === "links" ? 0 : graphShown().marks.get(k) || 0);

/** The two variables of a pair, the cause first where one is known. */
const endsOf = (k) => (directionOf(k) < 0 ? [pairs.j[k], pairs.i[k]] : [pairs.i[k], pairs.j[k]]);

/** Given a link: how likely it points from the first to the second of `endsOf`, the other way, or stays open. */
function chancesOf(k) {
  const rest = Math.max(0, 1 - pairs.forward[k] - pairs.backward[k]);
  const p = pairs.way ? pairs.way[k] : pairs.forward[k] + rest / 2;
  const both = state.view === "dag" ? [p, 1 - p] : [pairs.forward[k], pairs.backward[k]];
  const [there, back] = directionOf(k) < 0 ? both.reverse() : both;
  return { there, back, open: state.view === "dag" ? 0 : rest };
}

/** Whether an arrow is drawn although, by itself, another direction is likelier. */
const isForced = (k) => state.view !== "links" && graphShown().forced.has(k);

/** Whether an arrow is a guess: rather than not, data as these fit either direction. */
const isGuessed = (k) => state.view === "dag" && graphShown().guessed.has(k);

function spell(k) {
  const [a, b] = endsOf(k).map((n) => flat(names[n]));
  return `${a} ${isMoral(k) ? "··" : directionOf(k) ? "→" : "—"} ${b}`;
}

// ── links ───────────────────────────────────────────────────────────────────────────────────────────────────

/** How many pairs reach the threshold; those are the first ones. */
function countLinks(threshold = state.threshold) {
  let [low, high] = [0, pairs.skeleton.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pairs.skeleton[middle] >= threshold) low = middle + 1;
    else high = middle;
  }
  return low;
}

const isShown = (k) => (state.view === "links" ? pairs.skeleton[k] >= state.threshold : graphShown().marks.has(k));

/** Places of the links in view, likeliest first. */
function listLinks() {
  return state.view === "links" ? Array.from({ length: countLinks() }, (_, k) => k) : graphShown().pairs;
}

/** With calibrated probabilities, a link is false with probability 1 − p; the sum is the expected number. */
const expectFalse = (links) => links.reduce((sum, k) => sum + 1 - pairs.skeleton[k], 0);

/** How many links there are beside these: what the probabilities of all other pairs add up to. */
const expectMissed = (links) => Math.max(0, model.n_expected - links.reduce((sum, k) => sum + pairs.skeleton[k], 0));

const few = (number) => (number < 0.1 ? "< 0.1" : number.toFixed(1));

/** A pair that is rather dependent through a common child only than anything else; as Result.moral_pairs. */
const isMoral = (k) => !isShown(k) && pairs.moral[k] >= 0.5;

const listMoral = () => pairs.moral.map((_, k) => k).filter(isMoral);

/** Pairs behind which there is rather something hidden than not, the likeliest first. */
const listHidden = () => (pairs.hidden || []).map((_, k) => k).filter((k) => pairs.hidden[k] >= 0.5).sort((k, m) => pairs.hidden[m] - pairs.hidden[k] || k - m);

/** How likely a path of arrows leads from the first to the second of two variables. */
const upstreamOf = (a, b) => (a < b ? pairs.upstream : pairs.downstream)[findPair(a, b)] ?? 0;

const pairAt = new Map(pairs.i.map((i, k) => [i * names.length + pairs.j[k], k]));
const findPair = (a, b) => pairAt.get(Math.min(a, b) * names.length + Math.max(a, b));

// ── the sample ──────────────────────────────────────────────────────────────────────────────────────────────

/** Columns of numbers, stored as 16-bit integers in base64 with one step size a column. */
function unpack(packed) {
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const rows = bytes.length / 2 / packed.steps.length;
  return packed.steps.map((step, d) => Float64Array.from({ length: rows }, (_, m) => step * view.getInt16(2 * (d * rows + m), true)));
}

const sample = unpack(model.sample);
const turned = unpack(model.turned);

/**
 * What is left of two variables after a ridge regression on all others. With the precision matrix P and u = P x,
 * the residual of the pair A = {i, j} is the inverse of P restricted to A, applied to u restricted to A.
 */
function residuals(k) {
  const [i, j] = [pairs.i[k], pairs.j[k]];
  const [pii, pjj] = [model.precision[i], model.precision[j]];
  const pij = -pairs.partial[k] * Math.sqrt(pii * pjj);
  const determinant = pii * pjj - pij * pij;
  const [u, v] = [turned[i], turned[j]];
  return [u.map((_, m) => (pjj * u[m] - pij * v[m]) / determinant), u.map((_, m) => (pii * v[m] - pij * u[m]) / determinant)];
}

function correlate(x, y) {
  const mean = (z) => z.reduce((a, b) => a + b, 0) / z.length;
  const [mx, my] = [mean(x), mean(y)];
  let [xy, xx, yy] = [0, 0, 0];
  for (let m = 0; m < x.length; m++) {
    xy += (x[m] - mx) * (y[m] - my);
    xx += (x[m] - mx) ** 2;
    yy += (y[m] - my) ** 2;
  }
  return xx * yy > 0 ? xy / Math.sqrt(xx * yy) : 0;
}
