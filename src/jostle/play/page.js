// The bench: what is chosen is in `state`; `watch` asks the server for estimates and `update` shows each of them.
"use strict";

const state = { bench: null, number: null, input: null, token: null, strength: 1, source: null };
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
  at("give-text").hidden = state.bench.kind !== "sentence";
  at("give-image").hidden = state.bench.kind !== "picture";
  at("unit").textContent = `The ${state.bench.unit}.`;
}

function inputButton(number, name) {
  const button = make("button", { type: "button", title: name });
  button.setAttribute("role", "option");
  button.dataset.number = number;
  button.textContent = state.bench.kind === "sentence" ? name : "";
  button.setAttribute("aria-label", name);
  button.addEventListener("click", () => choose(number));
  if (state.bench.kind === "picture") {
    ask(`inputs/${number}`).then((found) => button.append(make("img", { src: found.shown.picture, alt: "" }))).catch(complain);
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
    button.setAttribute("aria-selected", String(button.dataset.number === state.number));
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
    make("p", { className: "number", textContent: `predicts ${said.class}, ${percent(said.share)} sure${right}; ${percent(said.margin)} ahead of ${said.second}` }),
    make("div", { className: "rate" }, make("div", { className: "span" }), make("div", { className: "dot" })),
    make("p", { className: "number flips" }),
    make("div", { className: "drawn" }, make("img", { alt: "", hidden: true }), make("span", { className: "number" })),
    make("p", { className: "number worst" }),
  );
  return panel;
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
  grid.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    const next = step && grid.children[Number(event.target.dataset.token) + step];
    if (next) { next.focus(); event.preventDefault(); }
  });
  return make("div", { className: "picture" }, make("img", { src: state.input.shown.picture, alt: state.input.name }), grid);
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
  state.source = source;
  source.onmessage = (event) => {
    const found = JSON.parse(event.data);
    if (found.error) { complain(found.error); source.close(); } else if (source === state.source) update(found);
  };
  source.addEventListener("end", () => source.close());
  source.onerror = () => source.close();
}

function update(found) {
  const lines = [];
  for (const [name, rate] of Object.entries(found.rates)) {
    const panel = document.querySelector(`[data-model="${CSS.escape(name)}"]`);
    if (!panel) return;
    const text = `flips in ${percent(rate.value)} of draws, between ${percent(rate.low)} and ${percent(rate.high)}`;
    panel.querySelector(".flips").textContent = text;
    lines.push(`${name}: ${text}`);
    Object.assign(panel.querySelector(".span").style, { left: `${100 * rate.low}%`, width: `${100 * (rate.high - rate.low)}%` });
    panel.querySelector(".dot").style.left = `${100 * rate.value}%`;
    shade(panel, found.maps[name]);
    showDrawn(panel, name, found.drawn);
  }
  const which = state.token === null ? "one token at random" : "this token";
  at("said").textContent = `${found.draws.toLocaleString("en")} draws, each with noise in ${which}; intervals of 95 %.`;
}

function shade(panel, map) {
  if (!map) return;
  for (const button of panel.querySelectorAll("[data-token]")) {
    const share = map[Number(button.dataset.token)];
    button.style.setProperty("--share", share === null ? 0 : share);
    const said = share === null ? "not jostled yet" : `flips in ${percent(share)} of draws`;
    button.title = said;
    button.setAttribute("aria-label", `${button.dataset.label}: ${said}`);
  }
}

function showDrawn(panel, name, drawn) {
  if (!drawn) return;
  const image = panel.querySelector(".drawn img");
  if (drawn.shown) { image.hidden = false; image.src = drawn.shown.picture; }
  const said = drawn.models[name];
  panel.querySelector(".drawn span").textContent = `one of the draws: ${said.class}, ${percent(said.share)} sure`;
}

async function searchWorst() {
  const button = at("worst");
  button.disabled = true;
  for (const line of document.querySelectorAll(".worst")) line.textContent = "searching ...";
  try {
    const found = await ask(`search/${state.number}?token=${state.token}&strength=${state.strength}`);
    for (const [name, one] of Object.entries(found)) {
      const panel = document.querySelector(`[data-model="${CSS.escape(name)}"]`);
      const result = one.flips ? `flips to ${one.to}` : "no flip was found";
      panel.querySelector(".worst").textContent = `worst change of this token, of length ${one.length.toFixed(2)}: ${result}`;
      if (one.drawn) { const image = panel.querySelector(".drawn img"); image.hidden = false; image.src = one.drawn.picture; }
    }
    if (state.source) state.source.close();
  } catch (error) {
    complain(error);
  }
  markToken();
}

// ---- start ----

function setStrength() {
  state.strength = Number((10 ** (Number(at("strength").value) / 20)).toPrecision(2));
  at("strength-said").textContent = String(state.strength);
}

function listen() {
  at("strength").addEventListener("input", setStrength);
  at("strength").addEventListener("change", watch);
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
  setStrength();
  listen();
  try {
    state.bench = await ask("bench");
    listInputs();
    await choose(Object.keys(state.bench.inputs)[0]);
  } catch (error) {
    complain(error);
  }
}

start();
