// ── the graph: Cytoscape.js draws it where layout.js says ───────────────────────────────────────────────────

const FONT = 13;
const MOST_DRAWN = { link: 400, moral: 200, hidden: 60 }; // of more, the likeliest
const MOST_NODES = 400; // of more, those with links
const LARGEST = 1.4; // a small graph is not blown up beyond this
const MARGIN = 14;
const DENSE_FROM = 80; // variables
const HEADS = { link: 1, moral: 0.3, hidden: 0.3 };
const ruler = document.createElement("canvas").getContext("2d");
let drawing = { nodes: [], links: [], places: [], routes: [], size: [1, 1] }; // what is in view, and where
let cy = null;

// ── what is drawn ───────────────────────────────────────────────────────────────────────────────────────────

/** Links in view, as { k, kind, a, b, p, isDirected, isForced, isGuessed, sure }; the faintest first. */
function listStrokes() {
  const found = { hidden: state.hidden ? listHidden() : [], moral: state.moral ? listMoral() : [], link: listLinks() };
  const said = { hidden: "pairs with a hidden cause", moral: "pairs with a common child", link: "links" };
  const limits = Object.entries(found).filter(([kind, some]) => some.length > MOST_DRAWN[kind]);
  byId("limit").textContent = limits.map(([kind, some]) => ` · of ${some.length} ${said[kind]}, the ${MOST_DRAWN[kind]} likeliest are drawn`).join("");
  return Object.entries(found).flatMap(([kind, some]) => some.slice(0, MOST_DRAWN[kind]).reverse().map((k) => describeStroke(k, kind)));
}

function describeStroke(k, kind) {
  const p = { link: pairs.skeleton, moral: pairs.moral, hidden: pairs.hidden }[kind][k];
  const [a, b] = endsOf(k);
  const isDirected = kind === "link" && directionOf(k) !== 0;
  const marks = { isDirected, isForced: isDirected && isForced(k), isGuessed: isDirected && isGuessed(k) };
  return { k, kind, a, b, p, ...marks, sure: isDirected ? chancesOf(k).there : p };
}

const degreeOf = (n) => drawing.links.filter(({ a, b, kind }) => kind === "link" && (a === n || b === n)).length;

/** Variables in view: all, or the one in focus with its surroundings. */
function listNodes(strokes) {
  if (!state.focus) {
    const touched = new Set(strokes.flatMap(({ a, b }) => [a, b]));
    const lone = names.map((_, n) => n).filter((n) => !touched.has(n));
    const left = Math.max(0, MOST_NODES - touched.size);
    if (lone.length > left) byId("limit").textContent += ` · ${lone.length - left} variables without links are not drawn`;
    return [...touched, ...lone.slice(0, left)].sort((m, n) => m - n);
  }
  const { n, way } = state.focus;
  const links = strokes.filter(({ kind }) => kind === "link" || way === "near");
  if (way === "near") return [...new Set([n, ...links.filter(({ a, b }) => a === n || b === n).flatMap(({ a, b }) => [a, b])])];
  const found = new Set([n]);
  for (const m of found) {
    for (const { a, b, isDirected } of links) {
      const [from, to] = way === "up" ? [b, a] : [a, b];
      if (isDirected && from === m) found.add(to);
    }
  }
  if (pairs.upstream) names.forEach((_, m) => chanceOf(m) >= 0.5 && found.add(m));
  return [...found];
}

/** In a view of what is upstream or downstream: how likely a variable is; null where that is not known. */
function chanceOf(m) {
  if (!state.focus || state.focus.way === "near" || !pairs.upstream || m === state.focus.n) return null;
  return state.focus.way === "up" ? upstreamOf(m, state.focus.n) : upstreamOf(state.focus.n, m);
}

function listLabels(nodes) {
  const isTight = !state.focus && (names.length >= DENSE_FROM || (names.length > 20 && byId("graph").clientWidth < 600));
  const labels = tellApart(names, isTight ? 16 : 20); // among all, so that a variable keeps its label in every view
  const chances = nodes.map(chanceOf);
  return nodes.map((n, at) => labels[n] + (chances[at] === null ? "" : `  ${chances[at].toFixed(2)}`));
}

/** Lay out what is in view for a frame, in pixels; returns the scale at which it fits. */
function arrange(frame) {
  const strokes = listStrokes();
  const nodes = listNodes(strokes);
  const place = new Map(nodes.map((n, at) => [n, at]));
  const links = strokes.filter(({ a, b }) => place.has(a) && place.has(b));
  ruler.font = `${FONT}px ${getComputedStyle(document.body).fontFamily}`;
  const labels = listLabels(nodes);
  const sizes = labels.map((label) => [Math.max(2.4 * FONT, ruler.measureText(label).width + 16), 2 * FONT]);
  const told = links.map(({ a, b, isDirected, kind }) => [place.get(a), place.get(b), isDirected, HEADS[kind]]);
  drawing = { nodes, labels, sizes, links, ...layOut({ sizes, links: told, frame }, nodes.length >= DENSE_FROM ? DENSE : LANES) };
  return Math.min(LARGEST, frame[0] / drawing.size[0], frame[1] / drawing.size[1]);
}

// ── on the screen ───────────────────────────────────────────────────────────────────────────────────────────

/** Room for the graph: as wide as the page lets it be, and as tall as so many variables need. */
function chooseFrame() {
  const width = byId("graph").clientWidth;
  const shape = width < 600 ? Math.min(2.2, 0.6 + names.length / 20) : Math.min(names.length >= DENSE_FROM ? 0.95 : 0.72, 0.45 + names.length / 60);
  const tallest = Math.max(500, window.innerHeight * (names.length >= DENSE_FROM || width < 600 ? 1.25 : 0.8));
  return [width - 2 * MARGIN, Math.max(260, Math.min(width * shape, tallest)) - 2 * MARGIN];
}

function redraw() {
  const frame = chooseFrame();
  const scale = arrange(frame);
  byId("graph").style.height = `${Math.ceil(Math.min(frame[1], drawing.size[1] * scale) + 2 * MARGIN)}px`;
  const nodes = drawing.nodes.map((n, at) => ({ group: "nodes", data: { id: `n${n}`, n, label: drawing.labels[at], width: drawing.sizes[at][0], height: drawing.sizes[at][1] }, position: { x: drawing.places[at][0], y: drawing.places[at][1] } }));
  const touched = new Set(drawing.links.filter(({ kind }) => kind === "link").flatMap(({ a, b }) => [a, b]));
  for (const { data } of nodes) data.isLone = touched.has(data.n) ? 0 : 1;
  cy.batch(() => {
    cy.elements().remove();
    cy.add([...nodes, ...drawing.links.map(asEdge)]);
  });
  cy.resize();
  fit();
  mark(state.pair, state.node);
  drawKey();
  sayFocus();
  byId("graph").setAttribute("aria-label", `Graph of ${count(drawing.nodes.length, "variable")} with ${count(drawing.links.length, "line")}; the tables below say the same`);
}

/** A link for Cytoscape; points of its route are told by how far along, and how far beside, the line between centres. */
function asEdge(link, at) {
  const [route, place] = [drawing.routes[at], new Map(drawing.nodes.map((n, k) => [n, drawing.places[k]]))];
  const [[ax, ay], [bx, by]] = [place.get(link.a), place.get(link.b)];
  const [dx, dy, squared] = [bx - ax, by - ay, (bx - ax) ** 2 + (by - ay) ** 2];
  const inner = route.slice(1, -1);
  const data = {
    id: `${link.kind}${link.k}`, source: `n${link.a}`, target: `n${link.b}`, k: link.k, kind: link.kind,
    width: link.kind === "link" ? 0.9 + (drawing.nodes.length >= DENSE_FROM ? 1.2 : 2.8) * link.p * link.p : 1.7, ink: 0.35 + 0.6 * link.p, head: 0.4 + 0.6 * link.sure,
    weights: inner.map(([x, y]) => (((x - ax) * dx + (y - ay) * dy) / squared).toFixed(5)).join(" "),
    distances: inner.map(([x, y]) => (((y - ay) * dx - (x - ax) * dy) / Math.sqrt(squared)).toFixed(2)).join(" "),
    start: `${(route[0][0] - ax).toFixed(2)}px ${(route[0][1] - ay).toFixed(2)}px`,
    end: `${(route.at(-1)[0] - bx).toFixed(2)}px ${(route.at(-1)[1] - by).toFixed(2)}px`,
    mark: link.kind === "hidden" ? "both" : link.isGuessed ? "guessed" : link.isForced ? "forced" : link.isDirected ? "sure" : "none",
  };
  return { group: "edges", data };
}

function fit() {
  const box = byId("canvas").getBoundingClientRect();
  if (!box.width) return;
  const zoom = Math.min(LARGEST, (box.width - 2 * MARGIN) / drawing.size[0], (box.height - 2 * MARGIN) / drawing.size[1]);
  cy.viewport({ zoom, pan: { x: (box.width - zoom * drawing.size[0]) / 2, y: (box.height - zoom * drawing.size[1]) / 2 } });
}

const zoomBy = (factor) => cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });

/** Colours as the style sheet has them at this moment: light, dark or paper. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const named = ["well", "ink", "accent", "on-accent", "line", "pick", "moral", "lone", "lone-ink"];
  return Object.fromEntries(named.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

function listStyles() {
  const colour = readColours();
  const font = getComputedStyle(document.body).fontFamily;
  const isMark = (mark) => `edge[mark = "${mark}"]`;
  const routed = { "curve-style": "unbundled-bezier", "edge-distances": "node-position", "control-point-weights": "data(weights)", "control-point-distances": "data(distances)", "source-endpoint": "data(start)", "target-endpoint": "data(end)" };
  return [
    { selector: "node", style: { shape: "round-rectangle", width: "data(width)", height: "data(height)", label: "data(label)", "background-color": colour.accent, color: colour["on-accent"], "font-size": FONT, "font-family": font, "text-valign": "center", "text-halign": "center", "min-zoomed-font-size": 4, "border-width": 0, "overlay-opacity": 0 } },
    { selector: "node[isLone = 1]", style: { "background-color": colour.lone, color: colour["lone-ink"] } },
    { selector: "edge", style: { ...routed, width: "data(width)", "line-color": colour.line, "line-opacity": "data(ink)", "arrow-scale": 1.05, "overlay-opacity": 0, "target-arrow-color": colour.ink, "source-arrow-color": colour.ink } },
    { selector: "edge.moved", style: { "curve-style": "straight", "source-endpoint": "outside-to-node", "target-endpoint": "outside-to-node" } },
    { selector: isMark("sure"), style: { "target-arrow-shape": "triangle" } },
    { selector: isMark("forced"), style: { "target-arrow-shape": "triangle", "target-arrow-fill": "hollow", "target-arrow-color": colour.line } },
    { selector: isMark("guessed"), style: { "target-arrow-shape": "vee", "target-arrow-fill": "hollow", "target-arrow-color": colour.line } },
    { selector: "edge[kind = 'moral']", style: { "line-color": colour.moral, "line-style": "dashed" } },
    { selector: isMark("both"), style: { "line-color": colour.pick, "line-style": "dashed", "target-arrow-shape": "triangle", "source-arrow-shape": "triangle", "target-arrow-color": colour.pick, "source-arrow-color": colour.pick } },
    { selector: "node.picked", style: { "border-width": 3, "border-color": colour.pick } },
    { selector: "node.child", style: { "border-width": 3, "border-color": colour.moral } },
    { selector: "edge.picked, edge.witness", style: { "line-color": colour.pick, "line-opacity": 1, "target-arrow-color": colour.pick, "source-arrow-color": colour.pick } },
    { selector: "edge.witness", style: { "line-style": "dotted" } },
    { selector: ".faded", style: { opacity: 0.16 } },
  ];
}

// ── marks ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Mark a pair with its suspected common child, or a variable with its neighbours. */
function mark(k, n) {
  if (!cy) return;
  const child = k !== null && isMoral(k) ? pairs.via[k] : -1;
  const ends = k === null ? [] : [pairs.i[k], pairs.j[k]];
  const witnesses = child < 0 ? [] : ends.map((end) => findPair(end, child));
  cy.batch(() => {
    cy.elements().removeClass("picked child witness faded");
    for (const end of n === null ? ends : [n]) cy.$id(`n${end}`).addClass("picked");
    if (child >= 0) cy.$id(`n${child}`).addClass("child");
    cy.edges().filter((edge) => edge.data("k") === k).addClass("picked");
    cy.edges().filter((edge) => witnesses.includes(edge.data("k"))).addClass("witness");
    if (n !== null && !state.focus && cy.$id(`n${n}`).nonempty()) cy.elements().not(cy.$id(`n${n}`).closedNeighborhood()).addClass("faded");
  });
}

function describeEdge(k, kind) {
  const p = pairs.skeleton[k].toFixed(2);
  if (kind === "hidden") return `hidden common cause ${pairs.hidden[k].toFixed(2)}, direct link ${p}`;
  if (kind === "moral") return `${p} direct, ${pairs.moral[k].toFixed(2)} common child`;
  if (state.view === "links") return p;
  if (!directionOf(k)) return `link ${p}, direction left open`;
  return `link ${p}, this way ${chancesOf(k).there.toFixed(2)}${isGuessed(k) ? ", a guess" : ""}`;
}

function showTip({ x, y } = { x: 0, y: 0 }, text) {
  const tip = byId("tip");
  tip.textContent = text;
  tip.hidden = false;
  tip.style.left = `${Math.max(4, Math.min(x + 14, cy.width() - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(y - 34, 4)}px`;
}

function hideTip() {
  byId("tip").hidden = true;
}

// ── focus ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Show a variable with its surroundings (`way`: near, up or down), or, for null, the whole graph. */
function setFocus(n, way = "near") {
  state.focus = n === null ? null : { n, way };
  if (n !== null) [state.node, state.pair] = [n, null];
  redraw();
  drawDetail();
}

function sayFocus() {
  const n = state.focus ? state.focus.n : state.node;
  byId("focus").hidden = n === null;
  if (n === null) return;
  byId("focus-name").textContent = flat(names[n]);
  for (const way of ["near", "up", "down"]) byId(`focus-${way}`).setAttribute("aria-pressed", Boolean(state.focus) && state.focus.way === way);
  for (const way of ["up", "down"]) byId(`focus-${way}`).hidden = state.view === "links" && !pairs.upstream;
  byId("focus-all").hidden = !state.focus;
  const what = !state.focus ? "" : { near: "It, and what it is linked with.", up: "What a path of arrows leads from to it", down: "What a path of arrows leads to from it" }[state.focus.way];
  byId("focus-said").textContent = what && state.focus.way !== "near" ? `${what}${pairs.upstream ? ", with how likely that is" : ""}${drawing.nodes.length === 1 ? ": nothing likely" : ""}.` : what;
}

// ── legend ──────────────────────────────────────────────────────────────────────────────────────────────────

const KEYS = {
  sure: "an arrow: the first acts on the second; the stronger the head, the likelier this way",
  guessed: "an open head: a guess, since what depends on what does not tell this direction",
  forced: "a hollow head: by itself another direction is likelier, and only the graph as a whole needs this one",
  none: "no head: linked, and the direction is left open; which end is higher says nothing",
  plain: "a line: linked directly",
  both: "dashed, two heads: something outside the table is behind both",
  moral: "dashed, no head: not linked, but both act on a third",
};

function listKeys() {
  const found = new Set(drawing.links.map((link, at) => (link.kind === "moral" ? "moral" : asEdge(link, at).data.mark)));
  if (found.delete("none")) found.add(state.view === "links" ? "plain" : "none");
  return Object.keys(KEYS).filter((key) => found.has(key));
}

function drawKey() {
  const items = listKeys().map((key) => make("span", {}, drawSample(key), ` ${KEYS[key]}`));
  if (drawing.links.length) items.push(make("span", {}, "the wider a line, the likelier the link"));
  byId("key").replaceChildren(...items);
}

function drawSample(key) {
  const svg = make("svg", { class: `sample ${key}`, viewBox: "0 0 34 12", width: 34, height: 12, "aria-hidden": "true" });
  const [left, right] = [key === "both" ? 9 : 1, ["none", "plain", "moral", "guessed"].includes(key) ? 33 : 25];
  svg.append(make("path", { class: "ink", d: `M${left} 6H${right}` }));
  if (["sure", "forced", "both"].includes(key)) svg.append(make("path", { class: "head", d: "M33 6L24 2V10Z" }));
  if (key === "both") svg.append(make("path", { class: "head", d: "M1 6L10 2V10Z" }));
  if (key === "guessed") svg.append(make("path", { class: "ink", d: "M25 2L33 6L25 10" }));
  return svg;
}

// ── start ───────────────────────────────────────────────────────────────────────────────────────────────────

function startGraph() {
  cy = cytoscape({ container: byId("canvas"), style: listStyles(), minZoom: 0.02, maxZoom: 6, boxSelectionEnabled: false, autounselectify: true, userZoomingEnabled: false, pixelRatio: Math.max(2, window.devicePixelRatio || 1) });
  const frame = byId("graph");
  const wake = (isAwake) => () => cy.userZoomingEnabled(isAwake); // or scrolling the page would stop at the graph
  frame.addEventListener("pointerdown", wake(true));
  frame.addEventListener("focusin", wake(true));
  frame.addEventListener("pointerleave", wake(false));
  cy.on("tap", "node", (event) => pickNode(event.target.data("n")));
  cy.on("dbltap", "node", (event) => setFocus(event.target.data("n")));
  cy.on("tap", "edge", (event) => pickPair(event.target.data("k")));
  cy.on("tap", (event) => event.target === cy && pickPair(null));
  cy.on("drag", "node", (event) => event.target.connectedEdges().addClass("moved"));
  cy.on("mouseover", "node", (event) => showTip(event.renderedPosition, names[event.target.data("n")]));
  cy.on("mouseover", "edge", (event) => {
    const { k, kind } = event.target.data();
    showTip(event.renderedPosition, `${spell(k)}   ${describeEdge(k, kind)}`);
    showPair(k);
  });
  cy.on("mouseout", "node, edge", (event) => {
    hideTip();
    if (event.target.isEdge()) showPair(null);
  });
  frame.addEventListener("keydown", steerGraph);
  byId("zoom-in").addEventListener("click", () => zoomBy(1.3));
  byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.3));
  byId("fit").addEventListener("click", redraw);
  for (const way of ["near", "up", "down"]) byId(`focus-${way}`).addEventListener("click", () => setFocus((state.focus || { n: state.node }).n, way));
  byId("focus-all").addEventListener("click", () => setFocus(null));
  startShield();
  startFind();
  let width = frame.clientWidth;
  new ResizeObserver(() => {
    if (frame.clientWidth === width) return;
    width = frame.clientWidth;
    redraw();
  }).observe(frame);
}

function steerGraph(event) {
  const act = { "+": () => zoomBy(1.25), "=": () => zoomBy(1.25), "-": () => zoomBy(0.8), 0: redraw, Escape: () => (state.focus ? setFocus(null) : pickPair(null)) }[event.key];
  const shift = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
  if (event.target.id !== "graph" || (!act && !shift)) return;
  event.preventDefault();
  if (act) act();
  else cy.panBy({ x: shift[0], y: shift[1] });
}

/** On a touch screen a finger on the graph scrolls the page, and a tap chooses a variable, until “Move” is pressed. */
function startShield() {
  const shield = byId("shield");
  shield.addEventListener("click", (event) => {
    const [x, y] = [event.offsetX, event.offsetY];
    const hit = cy.nodes().filter((node) => {
      const box = node.renderedBoundingBox();
      return box.x1 - 6 <= x && x <= box.x2 + 6 && box.y1 - 6 <= y && y <= box.y2 + 6;
    });
    if (hit.nonempty()) pickNode(hit[0].data("n"));
    else pickPair(null);
  });
  byId("move").addEventListener("click", () => {
    shield.hidden = !shield.hidden;
    cy.userZoomingEnabled(shield.hidden);
    byId("move").setAttribute("aria-pressed", shield.hidden);
  });
}

function startFind() {
  byId("names").append(...names.map((name) => make("option", { value: flat(name) })));
  const find = () => {
    const wanted = byId("find").value.trim().toLowerCase();
    if (!wanted) return byId("find-said").replaceChildren();
    const lower = names.map((name) => flat(name).toLowerCase());
    const found = [lower.indexOf(wanted), lower.findIndex((name) => name.startsWith(wanted)), lower.findIndex((name) => name.includes(wanted))].find((n) => n >= 0);
    byId("find-said").textContent = found === undefined ? "No variable is called that." : "";
    if (found !== undefined) setFocus(found);
  };
  byId("find").addEventListener("change", find);
  byId("find").addEventListener("input", (event) => event.inputType === undefined && find()); // chosen from the list
}
