"use strict";
/* Three views by the address: the start (#), a table and what to do with it (#table=…), a run and its report (#run=…). */

const byId = (id) => document.getElementById(id);
const VIEWS = ["start", "table", "run", "answer"];
const COLUMNS_LISTED = 200;
const NTH = ["any time", "1st", "2nd", "3rd", "4th", "5th", "6th"];
const EXAMPLES = { sachs: "proteins in 853 cells", crops: "field trials with two experiments" };
const nothing = () => ({ part: null, encode: false, drop: [], interventions: null, missing: "auto", stability: 0, independent_rows: false, keep_codes: false, required: [], forbidden: [], tierOf: {} });

const state = { view: "", table: null, seen: null, choices: nothing(), found: [], mode: "causes", picked: null, timer: 0, turn: 0, largest: Infinity };

// ── small helpers ─────────────────────────────────────────────────────────────────────────────────────────

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Ask the server; what it refuses is thrown as its words. */
async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw { words: ["the page cannot reach graphbam serve. Is it still running? Start it again, then load this page."] };
  }
  const body = await answer.json().catch(() => ({ words: [`something broke that should not (${answer.status})`] }));
  if (!answer.ok) throw body;
  return body;
}

/** Put a message on the page; its buttons make the choices they name. */
function say(box, words) {
  box.replaceChildren(...(words || []).map((part) => {
    if (typeof part === "string") return part;
    const button = make("button", { type: "button", className: "ghost", textContent: part.say });
    button.addEventListener("click", () => choose(part.set));
    return button;
  }));
  box.hidden = !words || !words.length;
}

function showProblem(error) {
  const words = error && error.words;
  if (!words) console.error(error);
  say(byId("problem"), words || ["something broke in the page itself. Load it again."]);
  byId("problem").scrollIntoView({ block: "nearest" });
}

function show(view) {
  state.view = view;
  for (const name of VIEWS) byId(name).hidden = name !== view;
  byId("problem").hidden = true;
}

const spellSize = (bytes) => `${Math.round(bytes / 2 ** 20)} MiB`;
const count = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

function spellLeft(seconds) {
  if (seconds === null) return "";
  if (seconds < 1.5) return "almost done";
  return seconds < 90 ? `about ${Math.ceil(seconds)} s left` : `about ${Math.ceil(seconds / 60)} min left`;
}

// ── the start ─────────────────────────────────────────────────────────────────────────────────────────────

async function openStart() {
  show("start");
  byId("crumb").textContent = "";
  const told = await ask("state");
  state.largest = told.largest;
  byId("largest").textContent = spellSize(told.largest);
  byId("examples").replaceChildren("Or take an example:", ...told.examples.map((name) => {
    const button = make("button", { type: "button", className: "ghost", textContent: EXAMPLES[name] || name });
    button.addEventListener("click", () => takeIn(ask(`examples/${name}`, { method: "POST" })));
    return button;
  }));
  byId("history").hidden = !told.runs.length;
  byId("runs").replaceChildren(...told.runs.map((run) => make("li", {}, make("a", { href: `#run=${run.run}` },
    make("b", { textContent: run.name }), make("span", { className: "quiet", textContent: describeRun(run) })))));
}

function describeRun(run) {
  const when = new Date(run.asked * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const fate = { waiting: "waits", running: "works", cancelled: "cancelled", refused: "did not work" };
  return `${when} · ${fate[run.state] || `${count(run.names.length, "variable")}, ${count(run.links.length, "link")}`}`;
}

async function takeIn(promise) {
  try {
    const taken = await promise;
    state.choices = nothing();
    location.hash = `#table=${taken.table}`;
  } catch (error) {
    showProblem(error);
  }
}

function takeFile(file) {
  if (!file) return;
  if (file.size > state.largest) {
    showProblem({ words: [`${file.name} is larger than ${spellSize(state.largest)}. Use graphbam infer on the command line, or keep fewer rows.`] });
    return;
  }
  byId("drop").querySelector("b").textContent = `Reading ${file.name} …`;
  takeIn(ask(`tables?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file }))
    .finally(() => { byId("drop").querySelector("b").textContent = "Drop a table here, or choose a file"; byId("file").value = ""; });
}

// ── a table ───────────────────────────────────────────────────────────────────────────────────────────────

async function openTable(key) {
  if (state.table !== key) Object.assign(state, { table: key, seen: null, picked: null, found: [] });
  const kept = sessionStorage.getItem(`choices ${key}`);
  state.choices = Object.assign(nothing(), kept ? JSON.parse(kept) : {});
  if (state.seen) show("table");
  await look();
}

/** What the server is sent: tiers as lists, and nothing about columns that are left out. */
function toSend() {
  const { tierOf, drop, ...rest } = state.choices;
  const isUsed = (name) => !drop.includes(name) && name !== rest.interventions;
  const used = Object.keys(tierOf).filter((name) => tierOf[name] && isUsed(name));
  const tiers = NTH.map((_, k) => used.filter((name) => tierOf[name] === k)).filter((tier) => tier.length);
  const keep = (edges) => edges.filter(([a, , b]) => isUsed(a) && isUsed(b));
  return { ...rest, drop: drop.filter((name) => name !== rest.interventions), tiers, required: keep(rest.required), forbidden: keep(rest.forbidden) };
}

async function look() {
  const turn = ++state.turn, key = state.table;
  sessionStorage.setItem(`choices ${key}`, JSON.stringify(state.choices));
  byId("plan").setAttribute("aria-busy", "true");
  try {
    const seen = await ask(`tables/${key}/look`, { method: "POST", body: JSON.stringify(toSend()) });
    if (turn !== state.turn) return;
    state.seen = seen;
    show("table");
    drawTable();
  } catch (error) {
    if (turn !== state.turn) return;
    if (!state.seen) history.replaceState(null, "", "#");
    if (!state.seen) await openStart();
    showProblem(error);
  } finally {
    byId("plan").setAttribute("aria-busy", "false");
  }
}

/** Make choices; names to leave out are added to those that are. */
function choose(changes) {
  const drop = changes.drop ? [...new Set([...state.choices.drop, ...changes.drop])] : state.choices.drop;
  Object.assign(state.choices, changes, { drop });
  if (state.view !== "table") {  // the first look failed, and one of its buttons was pressed
    sessionStorage.setItem(`choices ${state.table}`, JSON.stringify(state.choices));
    location.hash = `#table=${state.table}`;
    return;
  }
  drawChoices();
  drawKnown();
  look();
}

function drawTable() {
  const { seen, choices } = state;
  byId("crumb").textContent = seen.name;
  byId("table-name").textContent = seen.name;
  byId("table-size").textContent = `${count(seen.n_rows, "row")}, ${count(seen.columns.length, "column")}. Untick what is not a variable.`;
  byId("filter").hidden = seen.columns.length <= 20;
  drawColumns();
  const heads = seen.columns.slice(0, (seen.rows[0] || []).length).map((column) => make("th", { textContent: column.name }));
  byId("cells").replaceChildren(make("tr", {}, ...heads), ...seen.rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", { textContent: cell })))));
  say(byId("trouble"), seen.problem);
  const steps = seen.plan.length || seen.problem ? seen.plan : ["nothing: every column is used as it is"];
  byId("steps").replaceChildren(...steps.map((step) => make("li", { textContent: step })));
  byId("warn").hidden = !seen.warnings.length;
  byId("warnings").replaceChildren(...seen.warnings.map((warning) => make("li", { textContent: warning })));
  byId("infer").disabled = Boolean(seen.problem);
  byId("takes").textContent = seen.problem ? "" : `${count(seen.variables.length, "variable")}, ${count(seen.n_rows_used, "row")}: ${seen.takes}`;
  const able = seen.columns.filter((column) => column.is_text || column.kind === "names of rows");
  byId("interventions").replaceChildren(make("option", { value: "", textContent: "nothing" }),
    ...able.map((column) => make("option", { value: column.name, textContent: `as “${column.name}” says` })));
  const target = seen.columns.find((column) => column.targets);
  byId("suggest").hidden = !target || choices.interventions === target.name;
  if (target) say(byId("suggest"), choices.interventions ? [] : [`“${target.name}” names other columns. If it lists what an experiment set in each row: `, { say: "use it so", set: { interventions: target.name } }]);
  drawChoices();
  drawKnown();
}

function drawChoices() {
  const { choices } = state;
  for (const name of ["encode", "independent_rows", "keep_codes"]) byId(name).checked = choices[name];
  for (const name of ["missing", "stability"]) byId(name).value = String(choices[name]);
  byId("interventions").value = choices.interventions || "";
  for (const row of byId("columns").children) row.querySelector("input").checked = !choices.drop.includes(row.dataset.name);
}

function drawColumns() {
  const wanted = byId("filter").value.toLowerCase(), { seen, choices } = state;
  const shown = seen.columns.filter((column) => column.name.toLowerCase().includes(wanted));
  byId("columns").replaceChildren(...shown.slice(0, COLUMNS_LISTED).map((column) => {
    const tick = make("input", { type: "checkbox", checked: !choices.drop.includes(column.name), ariaLabel: `use ${column.name}` });
    tick.addEventListener("change", () => tickColumns([column.name], tick.checked));
    const comes = make("select", { ariaLabel: `when ${column.name} comes` }, ...NTH.map((text, k) => make("option", { value: k, textContent: text })));
    comes.value = tierIn(choices.tierOf, column.name);
    comes.addEventListener("change", () => choose({ tierOf: { ...choices.tierOf, [column.name]: Number(comes.value) } }));
    const isOut = column.fate.includes("left out") || column.fate === "says what was set";
    const row = make("tr", { className: isOut ? "out" : column.fate === "not a number" ? "bad" : "" },
      make("td", { className: "use" }, tick), make("td", { className: "name", textContent: column.name }), make("td", { className: "kind", textContent: column.kind }),
      make("td", { className: "gaps", textContent: column.missing ? `${Math.max(1, Math.round(100 * column.missing))} %` : "" }),
      make("td", { className: "values", textContent: column.shown.join(", ") }), make("td", { className: "comes" }, isOut ? "" : comes), make("td", { className: "fate", textContent: column.fate }));
    row.dataset.name = column.name;
    return row;
  }));
  byId("more").hidden = shown.length <= COLUMNS_LISTED;
  byId("more").textContent = `and ${shown.length - COLUMNS_LISTED} more: find them by name`;
}

function tickColumns(names, isUsed) {
  const drop = new Set(state.choices.drop);
  for (const name of names) drop[isUsed ? "delete" : "add"](name);
  state.choices.drop = [...drop];
  drawChoices();
  look();
}

// ── what is known ─────────────────────────────────────────────────────────────────────────────────────────

function listKnown() {
  return ["required", "forbidden"].flatMap((list) => state.choices[list].map(([a, mark, b]) => [a, mark, b, list]));
}

/** Say something of two variables; said again, it is taken back. */
function relate(a, b) {
  const { list, mark } = MODES[state.mode];
  const same = ([c, other, d]) => other === mark && ((c === a && d === b) || (mark === "--" && c === b && d === a));
  const edges = state.choices[list];
  choose({ [list]: edges.some(same) ? edges.filter((edge) => !same(edge)) : [...edges, [a, mark, b]] });
}

function pick(name) {
  const first = state.picked;
  state.picked = first === null ? name : null;
  if (first !== null && first !== name) relate(first, name);
  else drawKnown();
}

function drawKnown() {
  const { seen, choices } = state;
  if (!seen) return;
  const names = seen.columns.map((column) => column.name).filter((name) => !choices.drop.includes(name) && name !== choices.interventions)
    .filter((name) => !seen.variables.length || seen.variables.includes(name) || seen.problem);
  const focused = document.activeElement && document.activeElement.dataset && document.activeElement.closest("#board") ? document.activeElement.dataset.name : null;
  drawBoard(byId("board"), { names, tierOf: choices.tierOf, known: listKnown(), found: state.found, picked: state.picked, pick });
  if (focused) { const again = [...byId("board").querySelectorAll(".node")].find((node) => node.dataset.name === focused); if (again) again.focus(); }
  byId("modes").replaceChildren(...Object.entries(MODES).map(([key, mode]) => {
    const button = make("button", { type: "button", textContent: mode.say, ariaPressed: String(key === state.mode) });
    button.dataset.mode = key;
    button.addEventListener("click", () => { state.mode = key; drawKnown(); });
    return button;
  }));
  const words = MODES[state.mode].words;
  byId("board-hint").textContent = names.length > MOST_ON_BOARD ? "" : state.picked === null ? (state.found.length ? "Grey: links that were found." : "") : `“${state.picked}” ${words} … ?`;
  byId("say-mode").textContent = words;
  for (const id of ["say-a", "say-b"]) {
    const chosen = byId(id).value;
    byId(id).replaceChildren(...names.map((name) => make("option", { value: name, textContent: shorten(name, 40) })));
    if (names.includes(chosen)) byId(id).value = chosen;
  }
  byId("known").replaceChildren(...listKnown().map(([a, mark, b, list]) => {
    const remove = make("button", { type: "button", textContent: "×", ariaLabel: `take back: ${a} ${modeOf(list, mark).words} ${b}` });
    remove.addEventListener("click", () => choose({ [list]: state.choices[list].filter(([c, other, d]) => !(c === a && other === mark && d === b)) }));
    return make("li", { className: list === "forbidden" ? "not" : "" }, `${a} ${modeOf(list, mark).words} ${b}`, remove);
  }));
}

// ── a run ─────────────────────────────────────────────────────────────────────────────────────────────────

async function startRun() {
  byId("infer").disabled = true;
  try {
    const run = await ask(`tables/${state.table}/runs`, { method: "POST", body: JSON.stringify(toSend()) });
    location.hash = `#run=${run.run}`;
  } catch (error) {
    byId("infer").disabled = false;
    showProblem(error);
  }
}

async function openRun(key) {
  clearTimeout(state.timer);
  const run = await ask(`runs/${key}`);
  if (location.hash !== `#run=${key}`) return;
  byId("crumb").textContent = run.name;
  if (run.state === "done") return openAnswer(run);
  if (state.view !== "run") show("run");
  const isOver = run.state === "refused" || run.state === "cancelled";
  byId("run-name").textContent = run.name;
  const sentence = byId("run-sentence");
  sentence.className = run.state === "refused" ? "said" : "";
  if (run.state === "refused") say(sentence, run.words.map((part) => (typeof part === "string" ? part : part.say)));
  else say(sentence, [{ waiting: `${count(run.before, "run")} before yours`, running: run.sentence || "reading the table", cancelled: "Cancelled. Nothing of it is kept." }[run.state]]);
  byId("bar").hidden = byId("cancel").hidden = byId("run-left").hidden = isOver;
  byId("bar").value = run.share;
  byId("run-left").textContent = run.state === "running" ? spellLeft(run.left) : "";
  byId("cancel").onclick = () => ask(`runs/${key}`, { method: "DELETE" }).then(() => openRun(key)).catch(showProblem);
  byId("progress-back").hidden = !isOver;
  setBack(byId("progress-back"), run);
  if (!isOver) state.timer = setTimeout(() => openRun(key).catch(showProblem), 300);
}

/** A link back to the table of a run, with the choices it was made with. */
function setBack(link, run) {
  link.href = run.table ? `#table=${run.table}` : "#";
  link.onclick = () => {
    if (!run.table) return;
    const { tiers, ...rest } = run.choices;
    const tierOf = Object.fromEntries((tiers || []).flatMap((tier, k) => tier.map((name) => [name, k + 1])));
    sessionStorage.setItem(`choices ${run.table}`, JSON.stringify({ ...rest, tierOf }));
    if (state.table !== run.table) Object.assign(state, { table: run.table, seen: null, picked: null });
    state.found = run.links;
  };
}

function openAnswer(run) {
  show("answer");
  setBack(byId("answer-back"), run);
  byId("answer-about").textContent = `${count(run.names.length, "variable")}, ${count(run.links.length, "link")}${run.took ? `, ${run.took < 10 ? run.took.toFixed(1) : Math.round(run.took)} s` : ""}`;
  const offers = [["all.zip", "Everything (zip)"], ["arrows.csv", "Links (csv)"], ["graph.png", "Picture (png)"], ["report.html", "Report (html)"]];
  byId("files").replaceChildren(...offers.filter(([name]) => name === "all.zip" || run.files.includes(name) || (name === "arrows.csv" && run.files.includes("edges.csv")))
    .map(([name, text]) => make("a", { className: "ghost", textContent: text, href: `runs/${run.run}/${run.files.includes(name) || name === "all.zip" ? name : "edges.csv"}`, download: "" })));
  const source = new URL(`runs/${run.run}/report`, location.href).href;
  if (byId("report").src !== source) byId("report").src = source;
}

// ── the address ───────────────────────────────────────────────────────────────────────────────────────────

function route() {
  clearTimeout(state.timer);
  state.turn += 1;  // a look that is under way is no longer wanted
  const [, kind, key] = location.hash.match(/^#(table|run)=([\w-]+)$/) || [];
  const open = kind === "table" ? openTable(key) : kind === "run" ? openRun(key) : openStart();
  open.catch(async (error) => {
    if (kind) { history.replaceState(null, "", "#"); await openStart().catch(() => {}); }
    showProblem(error);
  });
}

function start() {
  byId("file").addEventListener("change", (event) => takeFile(event.target.files[0]));
  for (const kind of ["dragover", "dragleave", "drop"]) document.addEventListener(kind, (event) => {
    event.preventDefault();
    document.body.classList.toggle("over", kind === "dragover");
    if (kind === "drop") takeFile(event.dataTransfer.files[0]);
  });
  for (const name of ["encode", "independent_rows", "keep_codes"]) byId(name).addEventListener("change", (event) => choose({ [name]: event.target.checked }));
  byId("missing").addEventListener("change", (event) => choose({ missing: event.target.value }));
  byId("stability").addEventListener("change", (event) => choose({ stability: Number(event.target.value) }));
  byId("interventions").addEventListener("change", (event) => choose({ interventions: event.target.value || null }));
  byId("filter").addEventListener("input", drawColumns);
  byId("all").addEventListener("click", () => tickColumns(state.seen.columns.map((column) => column.name), true));
  byId("none").addEventListener("click", () => tickColumns(state.seen.columns.map((column) => column.name), false));
  byId("infer").addEventListener("click", startRun);
  byId("say").addEventListener("submit", (event) => {
    event.preventDefault();
    if (byId("say-a").value !== byId("say-b").value) relate(byId("say-a").value, byId("say-b").value);
  });
  window.addEventListener("hashchange", route);
  window.addEventListener("resize", () => { if (state.view === "table") drawKnown(); });
  byId("home").addEventListener("click", () => { if (!location.hash) route(); });
  route();
}

start();
