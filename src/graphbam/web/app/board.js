"use strict";
/* The board on which people draw what they know: variables in a ring, or in columns by the time they come. */

const MOST_ON_BOARD = 40;

const MODES = {
  causes: { say: "a causes b", words: "causes", list: "required", mark: "->" },
  linked: { say: "a and b are linked", words: "is linked with", list: "required", mark: "--" },
  never: { say: "a does not cause b", words: "does not cause", list: "forbidden", mark: "->" },
  apart: { say: "a and b are not linked", words: "is not linked with", list: "forbidden", mark: "--" },
};

function modeOf(list, mark) {
  return Object.values(MODES).find((mode) => mode.list === list && mode.mark === mark);
}

function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function shorten(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** When a variable comes; a column may be called “constructor”, as what every object has. */
const tierIn = (tierOf, name) => (Object.hasOwn(tierOf, name) ? tierOf[name] : 0);

/** Middle of each variable's box: columns by tier where there are any, else a ring. */
function placeNodes(names, tierOf, width) {
  const places = new Map(), height = Math.max(180, 36 * Math.ceil(names.length / 2));
  const tiers = [...new Set(names.map((name) => tierIn(tierOf, name)))].sort((a, b) => a - b);
  if (tiers.length > 1) {
    const columns = tiers.map((tier) => names.filter((name) => tierIn(tierOf, name) === tier));
    const tall = Math.max(180, 40 * Math.max(...columns.map((column) => column.length)));
    columns.forEach((column, k) => column.forEach((name, n) => {
      places.set(name, [(k + 0.5) * width / columns.length, (n + 0.5) * tall / column.length]);
    }));
    return { places, height: tall, room: width / columns.length - 14 };
  }
  const rows = Math.ceil(names.length / 2), step = height / rows;
  names.forEach((name, n) => {  // clockwise; no two boxes on a side share a row, and the sides keep apart
    const isRight = n < rows, row = isRight ? n : names.length - 1 - n, off = (row + 0.5) * 2 / rows - 1;
    const reach = Math.max(58, (width / 2 - 56) * Math.sqrt(Math.max(0, 1 - off * off)));
    places.set(name, [width / 2 + (isRight ? reach : -reach), (row + 0.5) * step]);
  });
  return { places, height, room: 104 };
}

/** Where a line from a to b leaves the box of b. */
function edgeOf(a, b, halfWidth, halfHeight) {
  const [dx, dy] = [a[0] - b[0], a[1] - b[1]];
  const t = Math.min(halfWidth / Math.max(1e-6, Math.abs(dx)), halfHeight / Math.max(1e-6, Math.abs(dy)), 1);
  return [b[0] + dx * t, b[1] + dy * t];
}

/**
 * Draw the board into a box. `known` are statements [a, mark, b, list], `found` links of an answer; `pick(name)` is
 * called when a variable is clicked, `picked` is the one that was clicked before.
 */
function drawBoard(box, { names, tierOf, known, found, picked, pick }) {
  box.replaceChildren();
  if (names.length < 2 || names.length > MOST_ON_BOARD) return;
  const width = Math.max(280, box.clientWidth || 360);
  const { places, height, room } = placeNodes(names, tierOf, width);
  const letters = Math.max(4, Math.floor(room / 8));
  const halfWidth = (name) => Math.min(room, 8 * Math.min(letters, name.length) + 16) / 2;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Variables; click two of them" });
  const line = (a, b, kind, isDirected) => {
    if (!places.has(a) || !places.has(b)) return;
    const start = edgeOf(places.get(b), places.get(a), halfWidth(a), 13), end = edgeOf(places.get(a), places.get(b), halfWidth(b), 13);
    picture.append(svg("line", { class: kind, x1: start[0], y1: start[1], x2: end[0], y2: end[1] }));
    if (!isDirected) return;
    const angle = Math.atan2(end[1] - start[1], end[0] - start[0]) * 180 / Math.PI;
    picture.append(svg("path", { class: kind === "found" ? "faint" : kind.replace("known", "head"), d: "M0 0 L-11 -5 L-11 5 Z", transform: `translate(${end[0]} ${end[1]}) rotate(${angle})` }));
  };
  for (const link of found) line(link.a, link.b, "found", link.directed);
  for (const [a, mark, b, list] of known) line(a, b, list === "forbidden" ? "known not" : "known", mark === "->");
  for (const name of names) {
    const [x, y] = places.get(name), half = halfWidth(name);
    const node = svg("g", { class: name === picked ? "node picked" : "node", tabindex: 0, role: "button", "aria-pressed": name === picked, transform: `translate(${x} ${y})` },
      svg("title", {}, name), svg("rect", { x: -half, y: -13, width: 2 * half, height: 26, rx: 7 }), svg("text", {}, shorten(name, letters)));
    node.dataset.name = name;
    node.addEventListener("click", () => pick(name));
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pick(name);
    });
    picture.append(node);
  }
  box.append(picture);
}
