// ── where to draw: dagre's layers, no wider than the frame ──────────────────────────────────────────────────
// The report runs this in the browser; `graphbam.output.layout` runs the same file for pictures.
// Causes stand above their effects. Between two layers there is nothing but links, and through a layer a link runs
// upright in a lane of its own: no link ever crosses the name of a variable.

const LANES = { node: 16, link: 9, layer: 44 }; // room beside variables, beside links, and between layers
const LARGE = 1.3; // nothing is drawn larger than by about this factor: of layouts that allow it, the flattest is taken
const DENSE = { node: 10, link: 6, layer: 34 }; // the same for very many variables

/**
 * Place variables and route links.
 *
 * `sizes` are [width, height] of every variable, `links` are [a, b, isDirected, weight], `frame` is [width, height] of
 * the place where it will be shown. Returns `places` [x, y] of centres, `routes` (points of each link from a to b: its
 * start, control points of quadratic curves, its end), and `size` [width, height] of it all.
 */
function layOut({ sizes, links, frame }, lanes = LANES) {
  const touched = new Set(links.flatMap(([a, b]) => [a, b]));
  const lone = sizes.map((_, n) => n).filter((n) => !touched.has(n));
  const order = orderNodes(sizes.length, links);
  const arcs = links.map(([a, b, isDirected, weight], k) => {
    const isTurned = !isDirected && order[a] > order[b];
    return { k, from: isTurned ? b : a, to: isTurned ? a : b, isTurned, weight };
  });
  const roomy = [...touched].reduce((sum, n) => sum + (sizes[n][0] + lanes.node) * (sizes[n][1] + lanes.layer), 0);
  const usual = Math.sqrt((roomy * frame[0]) / frame[1]);
  const tries = !links.length ? [] : links.length > 200 ? [0.85] : links.length > 60 ? [0.65, 0.9] : [0.6, 0.85, 1.2, 1.7];
  const parts = findParts(sizes.length, links);
  let best = { places: sizes.map(() => [0, 0]), routes: [], size: [0, 0], scale: 0 };
  for (const share of tries) {
    const found = layOutParts(parts, sizes, arcs, order, share * usual, frame, lanes);
    addLone(found, lone, sizes, frame, lanes);
    found.scale = Math.min(LARGE, frame[0] / found.size[0], frame[1] / found.size[1]);
    if (found.scale > best.scale || (found.scale === best.scale && found.size[1] < best.size[1])) best = found;
  }
  if (!touched.size) addLone(best, lone, sizes, frame, lanes);
  return { places: best.places, routes: best.routes, size: best.size };
}

/** Place of every variable in an order in which arrows point forward; neighbours follow each other closely. */
function orderNodes(n, links) {
  const [before, after, near] = [0, 1, 2].map(() => Array.from({ length: n }, () => []));
  for (const [a, b, isDirected] of links) {
    if (isDirected) {
      before[b].push(a);
      after[a].push(b);
    }
    near[a].push(b);
    near[b].push(a);
  }
  const [order, waits, first] = [Array(n).fill(-1), before.map((some) => some.length), Array(n).fill(Infinity)];
  for (let place = 0; place < n; place++) {
    let next = -1;
    for (let v = 0; v < n; v++) {
      if (order[v] >= 0 || waits[v]) continue;
      if (next < 0 || first[v] < first[next] || (first[v] === first[next] && near[v].length > near[next].length)) next = v;
    }
    if (next < 0) next = order.indexOf(-1); // a cycle: any will do
    order[next] = place;
    for (const v of after[next]) waits[v] -= 1;
    for (const v of near[next]) first[v] = Math.min(first[v], place);
  }
  return order;
}

/** Variables that links join, directly or not; those without links are no part. */
function findParts(n, links) {
  const part = Array.from({ length: n }, (_, v) => v);
  const root = (v) => (part[v] === v ? v : (part[v] = root(part[v])));
  for (const [a, b] of links) part[root(a)] = root(b);
  const found = new Map();
  for (const v of new Set(links.flatMap(([a, b]) => [a, b]))) found.set(root(v), [...(found.get(root(v)) || []), v]);
  return [...found.values()].map((nodes) => new Set(nodes));
}

function setInRows(boxes, widest, gap) {
  const rows = [];
  for (const box of boxes) {
    const row = rows.at(-1);
    if (row && row.width + gap[0] + box.size[0] <= widest) {
      row.boxes.push(box);
      row.width += gap[0] + box.size[0];
    } else rows.push({ boxes: [box], width: box.size[0] });
  }
  return rows;
}

/** Every part by itself, then all of them in rows, the tallest first. */
function layOutParts(parts, sizes, arcs, order, width, frame, lanes) {
  const boxes = parts.map((nodes) => {
    const some = arcs.filter(({ from }) => nodes.has(from));
    return { nodes, some, ...layOutLayers(sizes, some, order, width, lanes) };
  });
  boxes.sort((a, b) => b.size[1] - a.size[1] || b.size[0] - a.size[0]);
  const gap = [2 * lanes.node, lanes.layer];
  const area = boxes.reduce((sum, { size }) => sum + (size[0] + gap[0]) * (size[1] + gap[1]), 0);
  const usual = Math.sqrt((area * frame[0]) / frame[1]);
  const ways = [0.9, 1.1, 1.3, 1.6, 2].map((share) => setInRows(boxes, Math.max(share * usual, ...boxes.map(({ size }) => size[0])), gap));
  const scaleOf = (rows) => Math.min(frame[0] / Math.max(...rows.map((row) => row.width)), frame[1] / rows.reduce((sum, row) => sum + row.boxes[0].size[1] + gap[1], 0));
  const rows = ways.reduce((best, other) => (scaleOf(other) > scaleOf(best) ? other : best));
  const whole = { places: sizes.map(() => [0, 0]), routes: [], size: [Math.max(...rows.map((row) => row.width)), -gap[1]] };
  for (const row of rows) {
    let x = (whole.size[0] - row.width) / 2;
    for (const { nodes, some, places, routes, size } of row.boxes) {
      const put = ([px, py]) => [px + x, py + whole.size[1] + gap[1]];
      for (const v of nodes) whole.places[v] = put(places[v]);
      some.forEach(({ k }, n) => (whole.routes[k] = routes[n].map(put)));
      x += size[0] + gap[0];
    }
    whole.size[1] += gap[1] + row.boxes[0].size[1];
  }
  return whole;
}

/** Layers of at most about `width`: each variable as high as its causes and the room allow, then near its effects. */
function chooseLayers(sizes, arcs, order, width, lanes) {
  const [above, below] = [sizes.map(() => []), sizes.map(() => [])];
  for (const { from, to } of arcs) {
    above[to].push(from);
    below[from].push(to);
  }
  const nodes = sizes.map((_, v) => v).filter((v) => above[v].length + below[v].length).sort((v, w) => order[v] - order[w]);
  const [layer, used] = [Array(sizes.length).fill(0), []];
  const needs = (v) => sizes[v][0] + lanes.node;
  const hasRoom = (v, r) => !used[r] || used[r] + needs(v) <= width;
  for (const v of nodes) {
    let r = Math.max(-1, ...above[v].map((w) => layer[w])) + 1;
    while (!hasRoom(v, r)) r += 1;
    layer[v] = r;
    used[r] = (used[r] || 0) + needs(v);
  }
  const moveTo = (v, r) => {
    used[layer[v]] -= needs(v);
    used[r] = (used[r] || 0) + needs(v);
    layer[v] = r;
  };
  for (let sweep = 0; sweep < 3; sweep++) {
    for (const v of [...nodes].reverse()) {
      if (below[v].length <= above[v].length) continue; // links get shorter when it moves down
      let r = Math.min(...below[v].map((w) => layer[w])) - 1;
      while (r > layer[v] && !hasRoom(v, r)) r -= 1;
      if (r > layer[v]) moveTo(v, r);
    }
    for (const v of nodes) {
      if (above[v].length <= below[v].length) continue;
      let r = Math.max(...above[v].map((w) => layer[w])) + 1;
      while (r < layer[v] && !hasRoom(v, r)) r += 1;
      if (r < layer[v]) moveTo(v, r);
    }
  }
  const present = [...new Set(nodes.map((v) => layer[v]))].sort((a, b) => a - b);
  return layer.map((r) => present.indexOf(r));
}

function layOutLayers(sizes, arcs, order, width, lanes) {
  const layer = chooseLayers(sizes, arcs, order, width, lanes);
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  const ranker = (g) => g.nodes().forEach((v) => (g.node(v).rank = v in layer ? 2 * layer[v] : -1)); // dagre halves layers
  graph.setGraph({ rankdir: "TB", nodesep: lanes.node, edgesep: lanes.link, ranksep: lanes.layer, ranker });
  for (const { k, from, to, weight } of arcs) {
    for (const v of [from, to]) graph.setNode(`${v}`, { width: sizes[v][0], height: sizes[v][1] });
    graph.setEdge(`${from}`, `${to}`, { weight, minlen: layer[to] - layer[from] }, `${k}`);
  }
  dagre.layout(graph);
  const places = sizes.map((_, v) => (graph.hasNode(`${v}`) ? [graph.node(`${v}`).x, graph.node(`${v}`).y] : [0, 0]));
  const ways = arcs.map(({ k, from, to }) => {
    const inner = graph.edge({ v: `${from}`, w: `${to}`, name: `${k}` }).points.slice(1, -1);
    return inner.filter((_, n) => n % 2 === 1).map(({ x, y }) => [x, y]);
  });
  const present = graph.nodes().map(Number);
  drawTogether(sizes, arcs, present, places, ways, layer, lanes);
  const routes = routeLinks(sizes, arcs, places, ways, lanes);
  const all = [...present.flatMap((v) => [places[v][0] - sizes[v][0] / 2, places[v][0] + sizes[v][0] / 2]), ...routes.flat().map(([x]) => x)];
  const left = all.reduce((a, b) => Math.min(a, b));
  const move = (point) => void (point[0] -= left);
  places.forEach(move);
  routes.forEach((route) => route.forEach(move));
  return { places, routes, size: [all.reduce((a, b) => Math.max(a, b)) - left, graph.graph().height] };
}

/**
 * Keep dagre's order in every layer, and set the layers as narrow as they can be: dagre draws long links straight at any
 * width. Each layer in turn moves towards its neighbours, as near as the room beside each other allows.
 */
function drawTogether(sizes, arcs, present, places, ways, layer, lanes) {
  const layers = [];
  const put = (r, point, half, gap) => (layers[r] ??= []).push(Object.assign(point, { half, gap, pulls: [] }));
  for (const v of present) put(layer[v], places[v], sizes[v][0] / 2, lanes.node / 2);
  arcs.forEach(({ from }, n) => ways[n].forEach((point, k) => put(layer[from] + 1 + k, point, 0, lanes.link / 2)));
  arcs.forEach(({ from, to, weight }, n) => {
    const stops = [places[from], ...ways[n], places[to]];
    for (let k = 0; k + 1 < stops.length; k++) {
      const pull = weight * (stops[k].half && stops[k + 1].half ? 1 : stops[k].half || stops[k + 1].half ? 2 : 6);
      stops[k].pulls.push([stops[k + 1], pull]);
      stops[k + 1].pulls.push([stops[k], pull]);
    }
  });
  for (const row of layers) {
    row.sort((p, q) => p[0] - q[0]);
    let x = 0;
    row.forEach((point, k) => (point[0] = x += k ? apart(row[k - 1], point) : 0));
    row.forEach((point) => (point[0] -= x / 2));
  }
  for (let sweep = 0; sweep < 24; sweep++) {
    for (const row of sweep % 2 ? [...layers].reverse() : layers) settleRow(row);
  }
}

const apart = (p, q) => p.half + q.half + p.gap + q.gap;

/** Least squares: every point as near to where it is pulled as the room beside each other allows. */
function settleRow(row) {
  const blocks = []; // points that touch each other move together
  let offset = 0;
  row.forEach((point, k) => {
    offset += k ? apart(row[k - 1], point) : 0;
    let [sum, weight] = [1e-3 * point[0], 1e-3];
    for (const [other, pull] of point.pulls) [sum, weight] = [sum + pull * other[0], weight + pull];
    let block = { from: k, sum: sum - weight * offset, weight };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight > block.sum / block.weight) {
      const last = blocks.pop();
      block = { from: last.from, sum: last.sum + block.sum, weight: last.weight + block.weight };
    }
    blocks.push(block);
    point.offset = offset;
  });
  blocks.forEach(({ from, sum, weight }, b) => {
    const end = b + 1 < blocks.length ? blocks[b + 1].from : row.length;
    for (let k = from; k < end; k++) row[k][0] = row[k].offset + sum / weight;
  });
}

/** Links leave a variable below and reach it from above, side by side in the order of where they come from. */
function routeLinks(sizes, arcs, places, ways, lanes) {
  const ends = new Map();
  const spread = (side, key, toward) => {
    const groups = new Map();
    arcs.forEach((arc, n) => groups.set(arc[key], [...(groups.get(arc[key]) || []), n]));
    for (const [v, some] of groups) {
      some.sort((m, n) => toward(m) - toward(n));
      const step = Math.min(12, (0.8 * sizes[v][0]) / some.length);
      some.forEach((n, k) => ends.set(`${side}${n}`, [places[v][0] + step * (k - (some.length - 1) / 2), places[v][1] + (side * sizes[v][1]) / 2]));
    }
  };
  spread(1, "from", (n) => (ways[n][0] || places[arcs[n].to])[0]);
  spread(-1, "to", (n) => (ways[n].at(-1) || places[arcs[n].from])[0]);
  const [bow, lane] = [0.36 * lanes.layer, 0.44 * lanes.layer]; // how far lines run upright: at their ends, past variables
  const half = Math.max(...sizes.map(([, height]) => height)) / 2;
  return arcs.map((arc, n) => {
    const [start, end] = [ends.get(`1${n}`), ends.get(`-1${n}`)];
    const upright = ways[n].flatMap(([x, y]) => [[x, y - half - lane], [x, y + half + lane]]);
    const route = [start, [start[0], start[1] + bow], ...upright, [end[0], end[1] - bow], end];
    return (arc.isTurned ? route.reverse() : route).map(([x, y]) => [x, y]);
  });
}

/** Variables without links stand in rows below. */
function addLone(found, lone, sizes, frame, lanes) {
  const wide = lone.reduce((sum, v) => sum + sizes[v][0] + lanes.node, 0);
  const [gap, tall] = [lanes.node / 2, lone.length ? Math.max(...lone.map((v) => sizes[v][1])) : 0];
  const limit = Math.max(found.size[0], Math.min(wide, Math.sqrt((wide * (tall + gap) * frame[0]) / frame[1])), ...lone.map((v) => sizes[v][0]));
  const rows = [[]];
  let used = 0;
  for (const v of lone) {
    if (used && used + sizes[v][0] > limit + 1e-9) {
      rows.push([]);
      used = 0;
    }
    rows.at(-1).push(v);
    used += sizes[v][0] + lanes.node;
  }
  let y = found.size[1] + (found.size[1] ? lanes.layer / 2 : 0); // nearer than a layer: no link is looked for in between
  const grow = (limit - found.size[0]) / 2;
  for (const point of [...found.places, ...found.routes.flat()]) point[0] += grow;
  for (const row of lone.length ? rows : []) {
    let x = (limit - row.reduce((sum, v) => sum + sizes[v][0] + lanes.node, -lanes.node)) / 2;
    for (const v of row) {
      found.places[v] = [x + sizes[v][0] / 2, y + tall / 2];
      x += sizes[v][0] + lanes.node;
    }
    y += tall + gap;
  }
  found.size = [limit, lone.length ? y - gap : found.size[1]];
}
