// ── the graph: pan, zoom, drag, and a small force layout ────────────────────────────────────────────────────

const PAGE = { width: 1050, height: 700 }; // of the positions that come with the model
const PAPER = { width: 640, height: 466 }; // of the graph in print, where the room for buttons is not needed
const BUTTONS = 36; // pixels kept free at the bottom
const MOST_DRAWN = 1500;
const MOST_FORCES = 400;
const svg = document.querySelector("#graph svg");
const edgeLayer = svg.appendChild(make("g"));
const nodeLayer = svg.appendChild(make("g"));
const view = { scale: 1, x: 0, y: 0 };
const boxed = names.length <= 40;
const FONT = boxed ? (names.length <= 12 ? 15 : 13) : 11.5;
const LONGEST_LINK = 230; // pixels of the usual link when all is in view
let strokes = []; // drawn links: { k, a, b, kind, group, ink, hit, head }; kinds: link, moral, hidden

const nodes = names.map((name, n) => {
  const [x, y] = [model.positions[n][0] * PAGE.width, model.positions[n][1] * PAGE.height];
  return { n, x, y, home: { x, y }, start: { x, y }, vx: 0, vy: 0, halfWidth: 6, halfHeight: 6, radius: 6, degree: 0 };
});

function buildNodes() {
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = `${FONT}px ${getComputedStyle(document.body).fontFamily}`;
  for (const node of nodes) {
    const label = shorten(names[node.n]);
    node.textWidth = ruler.measureText(label).width;
    if (boxed) [node.halfWidth, node.halfHeight] = [Math.max(1.6 * FONT, node.textWidth / 2 + 10), FONT];
    const shape = boxed
      ? make("rect", { x: -node.halfWidth, y: -FONT, width: 2 * node.halfWidth, height: 2 * FONT, rx: 9 })
      : make("circle", { r: 6 });
    const group = make("g", { class: boxed ? "node" : "node dot", tabindex: 0, role: "button", "aria-label": names[node.n] });
    group.append(shape, make("text", { "font-size": FONT }, label));
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      pickNode(node.n);
    });
    group.addEventListener("pointerenter", (event) => showTip(event, names[node.n]));
    group.addEventListener("pointerleave", hideTip);
    group.addEventListener("pointerdown", (event) => startDrag(event, node));
    Object.assign(node, { group, shape, text: group.lastChild });
    nodeLayer.append(group);
  }
}

/** Make the links that pass the threshold, the faintest first so that the surest lie on top. */
function buildEdges() {
  const links = listLinks();
  const direct = links.slice(0, MOST_DRAWN).reverse();
  const moral = state.moral ? listMoral().slice(0, MOST_DRAWN).reverse() : [];
  byId("limit").textContent = links.length > MOST_DRAWN ? `· the ${MOST_DRAWN} likeliest of ${links.length} links are drawn` : "";
  nodes.forEach((node) => (node.degree = 0));
  const hidden = state.hidden ? listHidden().slice(0, MOST_DRAWN).reverse() : [];
  const drawn = { hidden, moral, link: direct };
  strokes = Object.entries(drawn).flatMap(([kind, some]) => some.map((k) => buildEdge(k, kind)));
  edgeLayer.replaceChildren(...strokes.map((stroke) => stroke.group));
  for (const node of nodes) node.group.classList.toggle("lone", node.degree === 0);
}

function buildEdge(k, kind) {
  const p = { link: pairs.skeleton, moral: pairs.moral, hidden: pairs.hidden }[kind][k];
  const [a, b] = endsOf(k).map((n) => nodes[n]);
  if (kind === "link") [a, b].forEach((node) => (node.degree += 1));
  const thin = (boxed ? 1 : 0.6) * (kind === "link" ? 1 : 0.55);
  const ink = make("path", { class: "ink", "stroke-width": (thin * (0.8 + 4.2 * p * p)).toFixed(2), "stroke-opacity": (0.25 + 0.6 * p).toFixed(2) });
  const hit = make("path", { class: "hit" });
  const isArrow = kind === "link" && directionOf(k);
  const strength = kind === "hidden" ? p : isArrow ? chancesOf(k).there : 0;
  const head = isArrow || kind === "hidden" ? make("path", { class: isArrow && isForced(k) ? "head hollow" : "head", "fill-opacity": (0.25 + 0.75 * strength).toFixed(2) }) : null;
  const group = make("g", { class: kind === "link" ? "edge" : `edge ${kind}`, "data-pair": k });
  group.append(ink, ...(head ? [head] : []), hit);
  group.addEventListener("click", () => pickPair(k));
  group.addEventListener("pointerenter", (event) => {
    showTip(event, `${spell(k)}   ${describeEdge(k, kind)}`);
    showPair(k);
  });
  group.addEventListener("pointerleave", () => {
    hideTip();
    showPair(null);
  });
  return { k, a, b, kind, group, ink, hit, head };
}

function describeEdge(k, kind) {
  const p = pairs.skeleton[k].toFixed(2);
  if (kind === "hidden") return `hidden common cause ${pairs.hidden[k].toFixed(2)}, direct link ${p}`;
  if (kind === "moral") return `${p} direct, ${pairs.moral[k].toFixed(2)} common child`;
  if (state.graph === null) return p;
  return directionOf(k) ? `link ${p}, this way ${chancesOf(k).there.toFixed(2)}` : `link ${p}, direction left open`;
}

// ── drawing ─────────────────────────────────────────────────────────────────────────────────────────────────

const toScreen = (node) => [node.x * view.scale + view.x, node.y * view.scale + view.y];

function redraw() {
  for (const stroke of strokes) drawEdge(stroke);
  for (const node of nodes) {
    const [x, y] = toScreen(node);
    node.group.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
  }
  if (!boxed) placeLabels();
}

function drawEdge(stroke) {
  const [ax, ay] = toScreen(stroke.a);
  const [bx, by] = toScreen(stroke.b);
  const bend = findBend(stroke, ax, ay, bx, by);
  const [cx, cy] = [(ax + bx) / 2 - bend * (by - ay), (ay + by) / 2 + bend * (bx - ax)];
  const head = stroke.head ? arrowHead(stroke.b, cx, cy, bx, by) : null;
  const tail = head && stroke.kind === "hidden" ? arrowHead(stroke.a, cx, cy, ax, ay) : null; // one at either end
  const [ex, ey] = head ? head.base : [bx, by];
  const [sx, sy] = tail ? tail.base : [ax, ay];
  const path = `M${sx.toFixed(1)} ${sy.toFixed(1)}Q${cx.toFixed(1)} ${cy.toFixed(1)} ${ex.toFixed(1)} ${ey.toFixed(1)}`;
  stroke.ink.setAttribute("d", path);
  stroke.hit.setAttribute("d", path);
  if (head) stroke.head.setAttribute("d", head.path + (tail ? tail.path : ""));
}

const BENDS = [0, 0.12, -0.12, 0.24, -0.24, 0.4, -0.4];

/** How far a line has to bend to touch no other box; one that is no link bends anyway, to be seen beside others. */
function findBend({ a, b, kind }, ax, ay, bx, by) {
  if (!boxed) return { link: 0, moral: 0.1, hidden: -0.1 }[kind];
  let [best, fewest] = [0, Infinity];
  for (const bend of kind === "link" ? BENDS : BENDS.slice(1)) {
    const [cx, cy] = [(ax + bx) / 2 - bend * (by - ay), (ay + by) / 2 + bend * (bx - ax)];
    const hits = nodes.filter((node) => node !== a && node !== b && isOnWay(node, ax, ay, cx, cy, bx, by)).length;
    if (hits < fewest) [best, fewest] = [bend, hits];
    if (!hits) break;
  }
  return best;
}

function isOnWay(node, ax, ay, cx, cy, bx, by) {
  const [x, y] = toScreen(node);
  for (let t = 0.04; t < 1; t += 0.04) {
    const [u, v, w] = [(1 - t) * (1 - t), 2 * t * (1 - t), t * t];
    if (Math.abs(u * ax + v * cx + w * bx - x) < node.halfWidth + 3 && Math.abs(u * ay + v * cy + w * by - y) < node.halfHeight + 3) return true;
  }
  return false;
}

/** A triangle whose tip touches the rim of the node it points to, and the middle of its base, where the line ends. */
function arrowHead(node, ax, ay, bx, by) {
  const length = Math.hypot(bx - ax, by - ay) || 1;
  const [ux, uy] = [(bx - ax) / length, (by - ay) / length];
  const rim = boxed ? Math.min(node.halfWidth / (Math.abs(ux) || 1e-9), node.halfHeight / (Math.abs(uy) || 1e-9)) : node.radius;
  const [tx, ty] = [bx - (rim + 2) * ux, by - (rim + 2) * uy];
  const [long, wide] = boxed ? [13, 6] : [8, 3.8];
  const [mx, my] = [tx - long * ux, ty - long * uy];
  const points = [[tx, ty], [mx - wide * uy, my + wide * ux], [mx + wide * uy, my - wide * ux]];
  return { path: `M${points.map((point) => point.map((value) => value.toFixed(1)).join(" ")).join("L")}Z`, base: [mx, my] };
}

/** Names beside dots, away from their links, most linked first; one that would cover something waits for room. */
function placeLabels() {
  const taken = [];
  for (const node of nodes) node.links = [];
  for (const { a, b } of strokes) {
    const [dx, dy] = [b.x - a.x, b.y - a.y];
    const length = Math.hypot(dx, dy) || 1;
    a.links.push([dx / length, dy / length]);
    b.links.push([-dx / length, -dy / length]);
  }
  for (const node of nodes) {
    node.radius = 4 + Math.min(node.degree, 8) * 0.5;
    node.shape.setAttribute("r", node.radius);
    const [x, y] = toScreen(node);
    taken.push([x - node.radius, y - node.radius, x + node.radius, y + node.radius]);
  }
  const isPicked = (node) => node.group.classList.contains("picked") || node.group.classList.contains("child");
  const order = [...nodes].sort((a, b) => isPicked(b) - isPicked(a) || b.degree - a.degree || a.n - b.n);
  for (const node of order) placeLabel(node, taken, isPicked(node));
}

function placeLabel(node, taken, isForced) {
  const [x, y] = toScreen(node);
  const [w, h, gap] = [node.textWidth, 13, node.radius + 3];
  const sides = [[gap + w / 2, 0], [-gap - w / 2, 0], [0, -gap - h / 2], [0, gap + h / 2]];
  const crowd = ([dx, dy]) => Math.max(-1, ...node.links.map(([ux, uy]) => (ux * dx + uy * dy) / Math.hypot(dx, dy)));
  sides.sort((a, b) => crowd(a) - crowd(b));
  const boxOf = ([dx, dy]) => [x + dx - w / 2, y + dy - h / 2, x + dx + w / 2, y + dy + h / 2];
  const isFree = (box) => !taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]);
  const side = sides.find((offset) => isFree(boxOf(offset))) || (isForced ? sides[0] : null);
  node.text.style.display = side ? "" : "none";
  if (!side) return;
  taken.push(boxOf(side));
  node.text.setAttribute("x", side[0]);
  node.text.setAttribute("y", side[1]);
}

// ── pan and zoom ────────────────────────────────────────────────────────────────────────────────────────────

function fit({ width, height } = svg.getBoundingClientRect()) {
  if (!width) return;
  const margin = boxed ? 18 : 30;
  const side = (key, half) => [Math.min(...nodes.map((node) => node[key])), Math.max(...nodes.map((node) => node[key])), Math.max(...nodes.map((node) => node[half]))];
  const [left, right, halfWidth] = side("x", "halfWidth");
  const [top, bottom, halfHeight] = side("y", "halfHeight");
  const across = (width - 2 * (halfWidth + margin)) / Math.max(right - left, 1);
  const down = (height - BUTTONS - 2 * (halfHeight + margin)) / Math.max(bottom - top, 1);
  view.scale = Math.max(0.05, Math.min(across, down, LONGEST_LINK / usualLink()));
  view.x = width / 2 - (view.scale * (left + right)) / 2;
  view.y = (height - BUTTONS) / 2 - (view.scale * (top + bottom)) / 2;
}

function usualLink() {
  const lengths = strokes.filter((stroke) => stroke.kind === "link").map(({ a, b }) => Math.hypot(a.x - b.x, a.y - b.y));
  return lengths.sort((a, b) => a - b)[lengths.length >> 1] || 100;
}

function zoom(factor, x, y) {
  const { width, height } = svg.getBoundingClientRect();
  [x, y] = [x ?? width / 2, y ?? height / 2];
  const scale = Math.min(20, Math.max(0.05, view.scale * factor));
  view.x = x - ((x - view.x) * scale) / view.scale;
  view.y = y - ((y - view.y) * scale) / view.scale;
  view.scale = scale;
  redraw();
}

function startPan(event) {
  if (event.target.closest(".node, .edge") || event.pointerType === "touch") return;
  const [x, y] = [event.clientX - view.x, event.clientY - view.y];
  let moved = false;
  follow(event, (now) => {
    moved = moved || Math.hypot(now.clientX - event.clientX, now.clientY - event.clientY) > 3;
    [view.x, view.y] = [now.clientX - x, now.clientY - y];
    redraw();
  }, () => moved || pickPair(null));
}

/** Follow the pointer until it is released. */
function follow(event, onMove, onEnd) {
  const end = () => {
    window.removeEventListener("pointermove", onMove);
    window.removeEventListener("pointerup", end);
    window.removeEventListener("pointercancel", end);
    onEnd();
  };
  window.addEventListener("pointermove", onMove);
  window.addEventListener("pointerup", end);
  window.addEventListener("pointercancel", end);
}

function startDrag(event, node) {
  event.preventDefault();
  event.stopPropagation();
  node.group.focus({ preventScroll: true });
  const frame = svg.getBoundingClientRect();
  const { clientX, clientY } = event;
  let moved = false;
  follow(event, (now) => {
    if (!moved && Math.hypot(now.clientX - clientX, now.clientY - clientY) < 4) return;
    moved = true;
    hideTip();
    node.held = { x: (now.clientX - frame.left - view.x) / view.scale, y: (now.clientY - frame.top - view.y) / view.scale };
    Object.assign(node, node.held);
    redraw(); // at once; the others follow
    warm(0.5);
  }, () => {
    if (node.held) [node.home, node.isPinned] = [node.held, true]; // it stays where it was dropped
    node.held = null;
    if (!moved) pickNode(node.n);
  });
}

// ── forces ──────────────────────────────────────────────────────────────────────────────────────────────────

let heat = 0;
let isFree = false; // whether variables may leave home for good

function warm(amount) {
  const wasCold = heat < 0.01;
  heat = Math.max(heat, amount);
  if (wasCold) requestAnimationFrame(animate);
}

function animate() {
  tick();
  redraw();
  heat *= 0.95;
  if (heat >= 0.01 || nodes.some((node) => node.held)) requestAnimationFrame(animate);
  else if (isFree) goHome();
}

/** One step: links pull to the usual length, variables push each other away, home pulls gently back. */
function tick() {
  const length = usualLength();
  if (nodes.length <= MOST_FORCES) pushApart(length);
  for (const { a, b, kind } of strokes) {
    const [dx, dy] = [b.x - a.x, b.y - a.y];
    const distance = Math.hypot(dx, dy) || 1;
    const pull = ((distance - length) / distance) * (kind === "link" ? 0.06 : 0.01) * heat;
    a.vx += pull * dx;
    a.vy += pull * dy;
    b.vx -= pull * dx;
    b.vy -= pull * dy;
  }
  for (const node of nodes) {
    const goal = isFree ? { x: PAGE.width / 2, y: PAGE.height / 2 } : node.home;
    const strength = isFree ? 0.012 * heat : 0.12;
    node.vx = 0.72 * (node.vx + strength * (goal.x - node.x));
    node.vy = 0.72 * (node.vy + strength * (goal.y - node.y));
    node.x += node.vx;
    node.y += node.vy;
    const fixed = node.held || (node.isPinned ? node.home : null);
    if (fixed) [node.x, node.y, node.vx, node.vy] = [fixed.x, fixed.y, 0, 0];
  }
}

function usualLength() {
  return 0.75 * Math.sqrt((PAGE.width * PAGE.height) / nodes.length);
}

function pushApart(length) {
  for (let n = 0; n < nodes.length; n++) {
    for (let m = 0; m < n; m++) {
      const [a, b] = [nodes[n], nodes[m]];
      const [dx, dy] = [a.x - b.x + 1e-3 * (n - m), a.y - b.y];
      const squared = dx * dx + dy * dy + 1;
      if (squared > 9 * length * length) continue;
      const push = ((isFree ? 0.25 : 0.05) * heat * length * length) / squared / Math.sqrt(squared) * 2;
      a.vx += push * dx;
      a.vy += push * dy;
      b.vx -= push * dx;
      b.vy -= push * dy;
    }
  }
}

/** Push overlapping names apart at the present zoom. */
function separate(rounds = 80) {
  for (let round = 0; round < rounds; round++) {
    let clashes = 0;
    for (let n = 0; n < nodes.length; n++) {
      for (let m = 0; m < n; m++) {
        const [a, b] = [nodes[n], nodes[m]];
        const [dx, dy] = [a.x - b.x + 1e-6 * (n - m), a.y - b.y + 1e-6 * (n - m)];
        const ox = (a.halfWidth + b.halfWidth + 6) / view.scale - Math.abs(dx);
        const oy = (a.halfHeight + b.halfHeight + 6) / view.scale - Math.abs(dy);
        if (ox <= 0 || oy <= 0) continue;
        clashes++;
        const [sx, sy] = ox < oy ? [(Math.sign(dx) * ox) / 2, 0] : [0, (Math.sign(dy) * oy) / 2];
        [a.x, a.y, b.x, b.y] = [a.x + sx, a.y + sy, b.x - sx, b.y - sy];
      }
    }
    if (!clashes) break;
  }
}

/** Where variables are now becomes where they belong. */
function goHome() {
  isFree = false;
  fit();
  if (boxed) separate();
  for (const node of nodes) node.home = { x: node.x, y: node.y };
  fit();
  redraw();
}

function arrange() {
  isFree = true;
  for (const node of nodes) node.isPinned = false;
  if (matchMedia("(prefers-reduced-motion: reduce)").matches || nodes.length > MOST_FORCES) {
    for (heat = 1; heat > 0.01; heat *= 0.97) tick();
    goHome();
  } else warm(1);
}

function reset() {
  for (const node of nodes) Object.assign(node, node.start, { home: node.start, isPinned: false, vx: 0, vy: 0 });
  [heat, isFree] = [0, false];
  fit();
  if (boxed) goHome();
  redraw();
}

// ── marks ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Mark a pair with its suspected common child, or a variable with its neighbours. */
function mark(k, n) {
  for (const node of nodes) node.group.classList.remove("picked", "child", "near");
  svg.classList.toggle("faded", n !== null);
  const child = k !== null && isMoral(k) ? pairs.via[k] : -1;
  const ends = k === null ? [] : [pairs.i[k], pairs.j[k]];
  for (const end of ends) nodes[end].group.classList.add("picked");
  if (child >= 0) nodes[child].group.classList.add("child");
  if (n !== null) nodes[n].group.classList.add("picked", "near");
  const witnesses = child < 0 ? [] : ends.map((end) => findPair(end, child));
  for (const stroke of strokes) {
    const isNear = n !== null && (stroke.a.n === n || stroke.b.n === n);
    stroke.group.classList.toggle("picked", stroke.k === k);
    stroke.group.classList.toggle("witness", witnesses.includes(stroke.k));
    stroke.group.classList.toggle("near", isNear);
    if (isNear) [stroke.a, stroke.b].forEach((node) => node.group.classList.add("near"));
  }
  if (!boxed) placeLabels();
}

function showTip(event, text) {
  const frame = svg.getBoundingClientRect();
  const tip = byId("tip");
  tip.textContent = text;
  tip.hidden = false;
  tip.style.left = `${Math.min(event.clientX - frame.left + 14, frame.width - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.max(event.clientY - frame.top - 34, 4)}px`;
}

function hideTip() {
  byId("tip").hidden = true;
}
