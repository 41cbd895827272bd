// The bench: what is chosen is in `state`; `watch` asks the server for estimates and `update` shows each of them.
"use strict";

const state = { bench: null, number: null, input: null, token: null, strength: 1, source: null, waiting: 0 };
const LEAST_DARKEST = 0.02; // the colours of a map never stand for less: a single flip must not look like an alarm
const BLANK = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";
const at = (id) => document.getElementById(id);

/** An element with text and children; text never becomes markup. */
function make(tag, options = {}, ...children) {
  const element = Object.assign(document.createElement(tag), options);
  element.append(...children);
  return element;
}

async function ask(path, options) {
  const answer = await fetch(path, options);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error || "the bench did not answer");
  return found;
}

function complain(error) {
  at("problem").hidden = !error;
  at("problem").textContent = error ? String(error.message || error) : "";
}

const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;

// ---- inputs ----

function listInputs() {
  const list = at("inputs");
  list.replaceChildren();
  for (const [number, name] of Object.entries(state.bench.inputs)) list.append(inputButton(number, name));
  rove(list, { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 });
  at("give-text").hidden = state.bench.kind !== "sentence";
  at("give-image").hidden = state.bench.kind !== "picture";
  at("unit").textContent = `The ${state.bench.unit}.`;
}

/** Of a group of buttons one can be reached by the tab key, and arrow keys move to the others. */
function rove(group, steps) {
  const first = group.querySelector("button");
  for (const button of group.querySelectorAll("button")) button.tabIndex = button === first ? 0 : -1;
  group.addEventListener("keydown", (event) => {
    const buttons = [...group.querySelectorAll("button")];
    const place = buttons.indexOf(event.target);
    const next = event.key === "Home" ? buttons[0] : event.key === "End" ? buttons.at(-1) : buttons[place + steps[event.key]];
    if (place >= 0 && next) { next.focus(); event.preventDefault(); }
  });
  group.addEventListener("focusin", (event) => {
    for (const button of group.querySelectorAll("button")) button.tabIndex = button === event.target ? 0 : -1;
  });
}

function inputButton(number, name) {
  const button = make("button", { type: "button", title: name, tabIndex: -1 });
  button.dataset.number = number;
  button.textContent = state.bench.kind === "sentence" ? name : "";
  button.setAttribute("aria-label", name);
  button.addEventListener("click", () => choose(number));
  if (state.bench.kind === "picture") {
    const image = make("img", { src: BLANK, alt: "" });
    button.append(image);
    ask(`shown/${number}`).then((shown) => { image.src = shown.picture; }).catch(complain);
  }
  return button;
}

async function choose(number) {
  try {
    state.input = await ask(`inputs/${number}`);
    state.number = number;
    state.token = null;
    complain(null);
    showInput();
    watch();
  } catch (error) {
    complain(error);
  }
}

async function give(content) {
  try {
    const { number } = await ask("inputs", { method: "POST", body: content });
    const name = typeof content === "string" ? content.slice(0, 60) : "your image";
    at("inputs").prepend(inputButton(number, name));
    await choose(number);
  } catch (error) {
    complain(error);
  }
}

// ---- what the models say ----

function showInput() {
  for (const button of at("inputs").children) {
    button.setAttribute("aria-pressed", String(button.dataset.number === state.number));
  }
  at("models").replaceChildren(...state.bench.models.map(modelPanel));
  markToken();
}

function modelPanel(name) {
  const said = state.input.models[name];
  const panel = make("article", { className: "model" });
  panel.dataset.model = name;
  const right = state.input.label && state.input.label !== said.class ? ` (it is ${state.input.label})` : "";
  panel.append(
    make("h3", { textContent: name }),
    state.bench.kind === "picture" ? picturePanel() : sentencePanel(),
    make("p", { className: "number predicts", textContent: `predicts ${said.class}, ${percent(said.share)} sure${right}; ${percent(said.margin)} ahead of ${said.second}` }),
    make("div", { className: "rate" }, make("div", { className: "span" }), make("div", { className: "dot" })),
    make("p", { className: "number flips" }),
    shownPanel("drawn one"), shownPanel("drawn worst"),
  );
  return panel;
}

/** A line about a jostled input, with its picture if it has one; the place is kept free. */
function shownPanel(name) {
  const line = make("div", { className: name }, make("p", { className: "number" }));
  if (state.bench.kind === "picture") line.prepend(make("img", { src: BLANK, alt: "" }));
  return line;
}

function showLine(line, text, picture) {
  line.querySelector(".number").textContent = text;
  const image = line.querySelector("img");
  if (image) image.src = picture || BLANK;
}

function tokenButton(token, label) {
  const button = make("button", { type: "button" });
  button.dataset.token = token;
  button.dataset.label = label;
  button.setAttribute("aria-label", label);
  button.addEventListener("click", () => {
    state.token = state.token === token ? null : token;
    markToken();
    watch();
  });
  return button;
}

function picturePanel() {
  const [rows, columns] = state.input.grid.slice(-2);
  const grid = make("div", { className: "grid" });
  grid.style.gridTemplate = `repeat(${rows}, 1fr) / repeat(${columns}, 1fr)`;
  for (let token = 0; token < rows * columns; token += 1) {
    grid.append(tokenButton(token, `row ${Math.floor(token / columns) + 1}, column ${(token % columns) + 1}`));
  }
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-label", "Patches; arrow keys move between them");
  rove(grid, { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns });
  const image = make("img", { src: state.input.shown.picture, alt: state.input.name });
  const panel = make("div", { className: "picture" }, image, grid);
  panel.style.setProperty("--ratio", columns / rows);
  return panel;
}

function sentencePanel() {
  const line = make("p", { className: "sentence" });
  const movable = new Set(state.input.tokens);
  for (const piece of state.input.shown.pieces) {
    const token = piece.tokens.find((one) => movable.has(one));
    if (token === undefined) {
      line.append(make("span", { className: piece.added || piece.unread ? "added" : "", textContent: piece.text }));
    } else {
      const button = tokenButton(token, piece.text);
      button.textContent = piece.text;
      line.append(button);
    }
  }
  rove(line, { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 });
  return line;
}

function markToken() {
  for (const button of document.querySelectorAll("[data-token]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.token) === state.token));
  }
  at("all").setAttribute("aria-pressed", String(state.token === null));
  at("worst").disabled = state.token === null;
}

// ---- estimates ----

function watch() {
  if (state.source) state.source.close();
  if (state.number === null) return;
  const token = state.token === null ? "all" : state.token;
  const source = new EventSource(`watch/${state.number}?token=${token}&strength=${state.strength}`);
  const asked = performance.now();
  let last = null;
  state.source = source;
  at("said").textContent = "Drawing noise ...";
  for (const line of document.querySelectorAll(".drawn")) showLine(line, "");
  source.onmessage = (event) => {
    const found = JSON.parse(event.data);
    if (source !== state.source) return;
    if (found.error) { complain(found.error); source.close(); return; }
    if (!last) { document.body.dataset.waited = Math.round(performance.now() - asked); sayAloud(found); }
    last = found;
    update(found);
  };
  source.addEventListener("end", () => { source.close(); if (last && source === state.source) { sayAloud(last); sayEnd(last); } });
  source.onerror = () => { source.close(); if (!last) complain("the bench does not answer any more: is jostle play still running?"); };
}

const rateText = (rate) => `flips in ${percent(rate.value)} of draws, between ${percent(rate.low)} and ${percent(rate.high)}` +
  (rate.to ? `; most to ${rate.to}` : "");

/** For a screen reader: the first estimate and the last one, not those between. */
function sayAloud(found) {
  const parts = Object.entries(found.rates).map(([name, rate]) => `${name} ${rateText(rate)}`);
  at("aloud").textContent = `After ${found.draws.toLocaleString("en")} draws: ${parts.join(". ")}.`;
}

const whichToken = () => (state.token === null ? "one token at random" : "this token");

function sayEnd(found) {
  at("said").textContent = `${found.draws.toLocaleString("en")} draws, each with noise in ${whichToken()}; intervals of 95 %. Finished.`;
}

function update(found) {
  const shares = Object.values(found.maps).flat().filter((share) => share !== null);
  const darkest = Math.max(LEAST_DARKEST, ...shares);
  at("darkest").textContent = shares.length ? `flips in ${percent(darkest)} of draws` : at("darkest").textContent;
  for (const [name, rate] of Object.entries(found.rates)) {
    const panel = document.querySelector(`[data-model="${CSS.escape(name)}"]`);
    if (!panel) return;
    panel.querySelector(".flips").textContent = rateText(rate);
    Object.assign(panel.querySelector(".span").style, { left: `${100 * rate.low}%`, width: `${100 * (rate.high - rate.low)}%` });
    panel.querySelector(".dot").style.left = `calc(${100 * rate.value}% - 1px)`;
    shade(panel, found.maps[name], darkest);
    showDrawn(panel, name, found.drawn);
  }
  at("said").textContent = `${found.draws.toLocaleString("en")} draws, each with noise in ${whichToken()}; intervals of 95 %, valid at any time.`;
}

function shade(panel, map, darkest) {
  if (!map) return;
  for (const button of panel.querySelectorAll("[data-token]")) {
    const share = map[Number(button.dataset.token)];
    button.style.setProperty("--share", share === null ? 0 : share / darkest);
    const said = share === null ? "not jostled yet" : `flips in ${percent(share)} of draws`;
    button.title = said;
    button.setAttribute("aria-label", `${button.dataset.label}: ${said}`);
  }
}

function showDrawn(panel, name, drawn) {
  if (!drawn) return;
  const said = drawn.models[name];
  showLine(panel.querySelector(".one"), `one of the draws: ${said.class}, ${percent(said.share)} sure`, drawn.shown && drawn.shown.picture);
}

async function searchWorst() {
  const asked = { number: state.number, token: state.token, strength: state.strength };
  const isOver = () => asked.number !== state.number || asked.token !== state.token || asked.strength !== state.strength;
  at("worst").disabled = true;
  for (const line of document.querySelectorAll(".worst")) showLine(line, "searching ...");
  try {
    const found = await ask(`search/${asked.number}?token=${asked.token}&strength=${asked.strength}`);
    if (isOver()) return;
    for (const [name, one] of Object.entries(found)) {
      const panel = document.querySelector(`[data-model="${CSS.escape(name)}"]`);
      const result = one.flips ? `flips to ${one.to}` : "no flip was found";
      const text = `worst change of this token, of length ${one.length.toFixed(2)}: ${result}`;
      showLine(panel.querySelector(".worst"), text, one.drawn && one.drawn.picture);
      at("aloud").textContent = `${name}: ${text}`;
    }
  } catch (error) {
    for (const line of document.querySelectorAll(".worst")) showLine(line, "");
    complain(error);
  }
  markToken();
}

// ---- start ----

function setStrength() {
  state.strength = Number((state.bench.strength * 10 ** (Number(at("strength").value) / 20)).toPrecision(2));
  at("strength-said").textContent = String(state.strength);
  at("strength").setAttribute("aria-valuetext", `${state.strength}, ${state.bench.unit}`);
}

function listen() {
  at("strength").addEventListener("input", () => {
    setStrength();
    clearTimeout(state.waiting);
    state.waiting = setTimeout(watch, 120); // a slide asks once it rests, not at every step
  });
  at("all").addEventListener("click", () => { state.token = null; markToken(); watch(); });
  at("worst").addEventListener("click", searchWorst);
  at("give-text").addEventListener("submit", (event) => { event.preventDefault(); give(at("text").value); });
  at("file").addEventListener("change", (event) => { if (event.target.files[0]) give(event.target.files[0]); });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    const file = event.dataTransfer.files[0];
    if (file && state.bench && state.bench.kind === "picture") give(file);
  });
}

async function start() {
  try {
    state.bench = await ask("bench");
    setStrength();
    listen();
    listInputs();
    await choose(Object.keys(state.bench.inputs)[0]);
  } catch (error) {
    complain(error);
  }
}

start();
