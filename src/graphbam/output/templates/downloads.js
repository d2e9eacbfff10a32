// ── the picture as SVG and PNG, the links as CSV, and the page on paper ─────────────────────────────────────

/** The graph in view as an SVG element that stands alone; colours are those of paper. */
function drawSvg() {
  const colour = { well: "#ffffff", ink: "#1c2733", accent: "#12466b", "on-accent": "#ffffff", line: "#64748b", pick: "#0f8b8d", moral: "#c8571b", lone: "#e6ebf1", "lone-ink": "#5d6b7d" };
  const [width, height] = drawing.size;
  const svg = make("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `${-MARGIN} ${-MARGIN} ${width + 2 * MARGIN} ${height + 2 * MARGIN}`, width: Math.round(width + 2 * MARGIN), height: Math.round(height + 2 * MARGIN), "font-family": "Helvetica, Arial, sans-serif", "font-size": FONT });
  svg.append(make("rect", { x: -MARGIN, y: -MARGIN, width: width + 2 * MARGIN, height: height + 2 * MARGIN, fill: colour.well }));
  drawing.links.forEach((link, at) => svg.append(...drawLine(link, drawing.routes[at], colour)));
  const touched = new Set(drawing.links.filter(({ kind }) => kind === "link").flatMap(({ a, b }) => [a, b]));
  drawing.nodes.forEach((n, at) => {
    const [[x, y], [w, h]] = [drawing.places[at], drawing.sizes[at]];
    const isLone = !touched.has(n);
    svg.append(make("rect", { x: round(x - w / 2), y: round(y - h / 2), width: round(w), height: round(h), rx: 7, fill: isLone ? colour.lone : colour.accent }));
    svg.append(make("text", { x: round(x), y: round(y + 0.35 * FONT), "text-anchor": "middle", fill: isLone ? colour["lone-ink"] : colour["on-accent"] }, drawing.labels[at]));
  });
  return svg;
}

const round = (value) => Number(value.toFixed(2));

function drawLine(link, route, colour) {
  const { data } = asEdge(link, drawing.links.indexOf(link));
  const stroke = { link: colour.line, moral: colour.moral, hidden: colour.pick }[link.kind];
  const isFull = ["sure", "forced", "both"].includes(data.mark);
  const ends = isFull ? [headAt(route.at(-1), route.at(-2))] : [];
  if (data.mark === "both") ends.push(headAt(route[0], route[1]));
  const points = [data.mark === "both" ? ends[1].base : route[0], ...route.slice(1, -1), isFull ? ends[0].base : route.at(-1)];
  const line = make("path", { d: tracePath(points), fill: "none", stroke, "stroke-width": round(data.width), "stroke-opacity": round(data.ink), "stroke-dasharray": link.kind === "link" ? null : "6 5" });
  const fill = data.mark === "forced" ? colour.well : data.mark === "both" ? colour.pick : colour.ink;
  const heads = ends.map(({ path }) => make("path", { class: "head", d: path, fill, stroke: data.mark === "forced" ? colour.line : null, "stroke-width": 1.3 }));
  if (data.mark === "guessed") heads.push(make("path", { class: "head", d: headAt(route.at(-1), route.at(-2)).open, fill: "none", stroke: colour.line, "stroke-width": 1.6 }));
  return [line, ...heads];
}

/** Quadratic curves that join midway between control points. */
function tracePath(points) {
  const inner = points.slice(1, -1);
  const text = ([x, y]) => `${round(x)} ${round(y)}`;
  const joints = inner.map((point, n) => (n + 1 < inner.length ? [(point[0] + inner[n + 1][0]) / 2, (point[1] + inner[n + 1][1]) / 2] : points.at(-1)));
  return `M${text(points[0])}${inner.map((point, n) => `Q${text(point)} ${text(joints[n])}`).join("")}`;
}

function headAt([tx, ty], [fx, fy], long = 9, wide = 4) {
  const length = Math.hypot(tx - fx, ty - fy) || 1;
  const [ux, uy] = [(tx - fx) / length, (ty - fy) / length];
  const base = [tx - long * ux, ty - long * uy];
  const [left, right] = [1, -1].map((side) => `${round(base[0] - side * wide * uy)} ${round(base[1] + side * wide * ux)}`);
  const tip = `${round(tx)} ${round(ty)}`;
  return { base, path: `M${tip}L${left}L${right}Z`, open: `M${left}L${tip}L${right}` };
}

/** Links in view, one a row: names as they are, probabilities as in the tables. */
function spellCsv() {
  const quote = (value) => (/[",\r\n]/.test(`${value}`) ? `"${`${value}`.replaceAll('"', '""')}"` : `${value}`);
  const head = ["a", "edge", "b", "link", "this_way", "other_way", "open", "forced", "guessed", "common_child", "hidden_cause"];
  const rows = [...drawing.links].reverse().map((link) => {
    const edge = { moral: "··", hidden: "<->" }[link.kind] || (link.isDirected ? "->" : "--");
    const { there, back, open } = pairs.forward ? chancesOf(link.k) : { there: "", back: "", open: "" };
    return [names[link.a], edge, names[link.b], pairs.skeleton[link.k], there, back, open, link.isForced, link.isGuessed, pairs.moral[link.k], pairs.hidden ? pairs.hidden[link.k] : ""];
  });
  return [head, ...rows].map((row) => row.map(quote).join(",")).join("\n") + "\n";
}

function saveAs(name, content) {
  const link = make("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function startDownloads() {
  const stem = `${document.title.split(" · ")[0].replace(/\.[^.]*$/, "").replace(/[^\p{L}\p{N}_-]+/gu, "_") || "graph"}-graph`;
  byId("save-svg").addEventListener("click", () => saveAs(`${stem}.svg`, new Blob([new XMLSerializer().serializeToString(drawSvg())], { type: "image/svg+xml" })));
  byId("save-png").addEventListener("click", () => saveAs(`${stem}.png`, cy.png({ output: "blob", full: true, scale: Math.min(3, 9000 / Math.max(...drawing.size)), bg: readColours().well })));
  byId("save-csv").addEventListener("click", () => saveAs(`${stem}.csv`, new Blob([spellCsv()], { type: "text/csv" })));
  window.addEventListener("beforeprint", () => byId("paper").replaceChildren(drawSvg()));
  window.addEventListener("afterprint", () => byId("paper").replaceChildren());
}
