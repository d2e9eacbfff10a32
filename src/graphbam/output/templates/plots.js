// ── small plots ─────────────────────────────────────────────────────────────────────────────────────────────

/** Scatter of two columns with a smooth curve through it. */
function drawScatter(x, y, xName, yName) {
  const labels = [tellApart([xName, yName], 36)[0], tellApart([xName, yName], 20)[1]];
  const [width, height, left, bottom, pad] = [358, 196, 26, 24, 8];
  const [xLow, xHigh] = rangeOf(x);
  const [yLow, yHigh] = rangeOf(y);
  const px = (value) => left + ((value - xLow) / (xHigh - xLow)) * (width - left - pad);
  const py = (value) => height - bottom - ((value - yLow) / (yHigh - yLow)) * (height - bottom - pad);
  const dots = Array.from(x, (value, m) => `M${px(value).toFixed(1)} ${py(y[m]).toFixed(1)}h0`).join("");
  const curve = smooth(x, y).map(([a, b], n) => `${n ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("");
  const svg = make("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Scatter of ${yName} against ${xName}` });
  if (xLow < 0 && xHigh > 0) svg.append(make("line", { class: "zero", x1: px(0), x2: px(0), y1: pad, y2: height - bottom }));
  if (yLow < 0 && yHigh > 0) svg.append(make("line", { class: "zero", x1: left, x2: width - pad, y1: py(0), y2: py(0) }));
  svg.append(make("path", { class: "points", d: dots }), make("path", { class: "curve", d: curve }));
  svg.append(make("text", { class: "axis", x: (left + width) / 2, y: height - 7, "text-anchor": "middle" }, labels[0]));
  const turn = `translate(16 ${(height - bottom) / 2}) rotate(-90)`;
  svg.append(make("text", { class: "axis", transform: turn, "text-anchor": "middle" }, labels[1]));
  return svg;
}

function rangeOf(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (!(high > low)) return [low - 1, high + 1];
  const margin = 0.04 * (high - low);
  return [low - margin, high + margin];
}

/** Local linear fit of y along x between the 3rd and the 97th percentile of x. */
function smooth(x, y, nPoints = 48) {
  const sorted = Float64Array.from(x).sort();
  const [low, high] = [sorted[Math.floor(0.03 * sorted.length)], sorted[Math.floor(0.97 * (sorted.length - 1))]];
  if (sorted.length < 8 || !(high > low)) return [];
  const mean = x.reduce((a, b) => a + b, 0) / x.length;
  const bandwidth = 0.3 * Math.sqrt(x.reduce((a, b) => a + (b - mean) ** 2, 0) / x.length);
  return Array.from({ length: nPoints }, (_, n) => {
    const at = low + ((high - low) * n) / (nPoints - 1);
    let [s0, s1, s2, t0, t1] = [0, 0, 0, 0, 0];
    for (let m = 0; m < x.length; m++) {
      const gap = (x[m] - at) / bandwidth;
      const weight = Math.exp(-0.5 * gap * gap) + 1e-9;
      s0 += weight;
      s1 += weight * gap;
      s2 += weight * gap * gap;
      t0 += weight * y[m];
      t1 += weight * gap * y[m];
    }
    s2 += 0.05 * s0; // where points are few, lean towards the local mean
    return [at, (s2 * t0 - s1 * t1) / (s2 * s0 - s1 * s1)];
  });
}

/** Numbers of pairs by probability, on a logarithmic scale since most pairs are surely not linked. */
function drawHistogram() {
  const [width, height, bottom, left] = [358, 130, 20, 8];
  const counts = model.histogram;
  const top = Math.log1p(Math.max(...counts));
  const step = (width - 2 * left) / counts.length;
  const svg = make("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Numbers of pairs by probability of a direct link" });
  counts.forEach((n, b) => {
    const tall = n ? Math.max(2, (Math.log1p(n) / top) * (height - bottom - 22)) : 0;
    const isShown = (b + 1) / counts.length > state.threshold + 1e-9;
    const fill = isShown ? "var(--accent)" : "var(--lone)";
    svg.append(make("rect", { x: left + b * step + 1, y: height - bottom - tall, width: step - 2, height: tall, rx: 2, fill }));
    if (n) svg.append(make("text", { x: left + (b + 0.5) * step, y: height - bottom - tall - 4, "text-anchor": "middle", class: "tiny" }, brief(n)));
  });
  const cut = left + state.threshold * (width - 2 * left);
  svg.append(make("line", { x1: cut, x2: cut, y1: 6, y2: height - bottom, stroke: "var(--pick)", "stroke-width": 2 }));
  for (const [p, anchor] of [[0, "start"], [0.5, "middle"], [1, "end"]]) {
    svg.append(make("text", { x: left + p * (width - 2 * left), y: height - 6, "text-anchor": anchor }, `${p}`));
  }
  return svg;
}

const brief = (n) => (n < 1000 ? `${n}` : n < 9950 ? `${(n / 1000).toFixed(1)}k` : `${Math.round(n / 1000)}k`);
