// What is done on the page goes into the state; what it says of the loss is computed in local.js, and shown.

import { explain } from "./local.js";
import * as model from "./model.js";
import { Rankings } from "./rankings.js";
import { Recursion } from "./recursion.js";
import { draw, html, resize, set, shown } from "./svg.js";

const $ = (id) => document.getElementById(id);

let { state, problem } = model.parse(location.hash);
let selected = null;
let latest = null; // the last answer, and the samples it is about
let saved = 0;

const find = (id) => state.samples.find((one) => one.id === id);

const rankings = new Rankings($("rankings"), {
  move: (id, score) => change(() => (find(id).score = model.rounded(score))),
  select: (id) => {
    selected = id;
    drawEditor();
    place();
  },
  flip,
  remove,
});

const recursion = new Recursion(
  {
    panel: $("recursion"), none: $("no-recursion"), grid: $("grid"), curve: $("curve"), caption: $("caption"),
    call: $("call"), said: $("said"), code: $("code"), count: $("count"), scrub: $("scrub"),
    first: $("first"), previous: $("previous"), next: $("next"), last: $("last"), play: $("play"),
  },
  {
    step: (k) => {
      state.step = k;
      save();
    },
  },
);

function change(edit) {
  edit();
  say("");
  update();
}

function update() {
  place();
  drawControls();
  drawEditor();
  save();
  show(explain(model.request(state)), state.samples.map((one) => one.id));
}

function place() {
  rankings.place(state.samples, selected, state.loss, state.scale);
}

// Browsers refuse an address that changes too often, so only the latest is written.
function save() {
  clearTimeout(saved);
  saved = setTimeout(() => history.replaceState(null, "", model.format(state)), 120);
}

function say(text) {
  $("message").textContent = text;
  $("message").hidden = !text;
}

function allowed(samples) {
  if (model.bothClasses(samples)) return true;
  say("A ranking needs at least one positive and one negative sample.");
  return false;
}

function flip(id) {
  if (allowed(state.samples.map((one) => (one.id === id ? { relevant: !one.relevant } : one)))) {
    change(() => (find(id).relevant = !find(id).relevant));
  }
}

function remove(id) {
  const left = state.samples.filter((one) => one.id !== id);
  if (!allowed(left)) return;
  const away = (one) => Math.abs(one.score - find(id).score);
  const beside = [...left].sort((a, b) => away(a) - away(b))[0].id;
  selected = beside;
  change(() => (state.samples = left));
  rankings.focus(beside);
}

function add(relevant) {
  if (state.samples.length >= model.MOST) {
    say(`The page shows at most ${model.MOST} samples; remove one first.`);
    return;
  }
  const one = model.sample(relevant, model.freeScore(state.samples, relevant));
  selected = one.id;
  change(() => state.samples.push(one));
}

function replaceSamples(samples) {
  selected = null;
  change(() => Object.assign(state, { samples, step: 0 }));
}

function drawControls() {
  for (const input of $("losses").querySelectorAll("input")) input.checked = input.value === state.loss;
  $("scale").value = String(state.scale);
  $("scale-shown").textContent = shown(state.scale, 2);
  const told = state.samples.map((one) => `${one.relevant ? "p" : "n"}${one.score}`).join(",");
  $("preset").value = Object.keys(model.PRESETS).find((name) => model.PRESETS[name] === told) ?? "";
  for (const part of document.querySelectorAll("[data-loss]")) part.hidden = part.dataset.loss !== state.loss;
  for (const part of document.querySelectorAll("[data-ranking]")) part.hidden = state.loss === "zero-one";
}

function drawEditor() {
  const one = selected === null ? undefined : find(selected);
  $("editor-parts").hidden = !one;
  const name = one && latest ? nameOf(one) : "";
  $("editor-name").textContent = one ? name : "Select a sample to edit it here.";
  if (one && document.activeElement !== $("editor-score")) $("editor-score").value = one.score.toFixed(2);
}

function nameOf(one) {
  const at = latest.ids.indexOf(one.id);
  const list = one.relevant ? latest.answer.positives : latest.answer.negatives;
  const place = list.indexOf(at) + 1;
  return `${one.relevant ? "Positive" : "Negative"} ${place > 0 ? place : ""}`;
}

function show(answer, ids) {
  latest = { answer, ids };
  rankings.show(answer, ids);
  recursion.show(answer, state.step);
  drawEditor();
  drawNumbers(answer);
  drawTable(answer, ids);
}

function put(id, value) {
  set($(id), { value }, shown(value));
}

function drawNumbers(answer) {
  put("value", answer.value);
  put("gap", answer.gap);
  put("violating-loss", answer.violating.loss);
  put("predicted-loss", answer.predicted.loss);
  $("value-again").textContent = shown(answer.value);
  $("violating-again").textContent = shown(answer.violating.loss);
  $("predicted-again").textContent = shown(answer.predicted.loss);
  const gap = answer.loss === "zero-one" ? "Σ s · ∂J/∂s" : "F(R) − F(R*)";
  $("gap-name").textContent = `${gap}, from the scores`;
  const sign = answer.gap < 0 ? "−" : "+";
  const weighed = `${shown(answer.scale, 2)} · ${shown(answer.violating.loss)}`;
  $("equation").textContent = `${shown(answer.value)} = ${weighed} ${sign} ${shown(Math.abs(answer.gap))}`;
  for (const which of ["predicted", "violating"]) {
    drawPattern($(`${which}-pattern`), answer[which].pattern);
    const ranks = answer[which].ranks.map((rank) => html("span", { class: "chip negative" }, String(rank)));
    $(`${which}-ranks`).replaceChildren(...ranks);
  }
  drawBars(answer);
}

function drawPattern(element, pattern) {
  const signs = [...pattern].map((sign) =>
    html("span", { class: `chip ${sign === "+" ? "positive" : "negative"}` }, sign === "+" ? "+" : "−"),
  );
  element.replaceChildren(...signs);
}

function drawBars(answer) {
  const element = $("bars");
  const width = Math.max(220, Math.floor(element.parentElement.clientWidth));
  const bound = answer.scale * answer.predicted.loss;
  const most = Math.max(1e-9, answer.value, bound);
  const [left, full] = [128, width - 128 - 2];
  resize(element, width, 52);
  element.replaceChildren();
  [["J", answer.value, "hinge"], ["scale · Δ by score", bound, "bound"]].forEach(([name, value, kind], k) => {
    const bar = { x: left, y: 5 + 26 * k, height: 14, rx: 4 };
    draw(element, "text", { x: 0, y: 16 + 26 * k }, name);
    draw(element, "rect", { ...bar, class: "track", width: full });
    draw(element, "rect", { ...bar, class: kind, width: Math.max(0, (full * value) / most) });
  });
  set(element, { "aria-label": `J is ${shown(answer.value)}; scale times Δ of the ranking by score is ${shown(bound)}` });
}

function drawTable(answer, ids) {
  const rows = answer.predicted.order.map((at, k) => {
    const one = find(ids[at]);
    const list = one.relevant ? answer.positives : answer.negatives;
    const place = list.indexOf(at);
    const counts = (ranked) => (one.relevant ? `c = ${ranked.above[place]}` : `r = ${ranked.ranks[place]}`);
    const cells = [
      shown(one.score, 2), k + 1, answer.violating.order.indexOf(at) + 1,
      counts(answer.predicted), counts(answer.violating), shown(answer.gradient[at]),
    ];
    const row = html("tr", { "data-id": one.id });
    const [kind, sign] = one.relevant ? ["positive", "+"] : ["negative", "−"];
    row.append(html("th", { scope: "row", class: kind }, `${sign}${place + 1}`));
    row.append(...cells.map((cell) => html("td", {}, String(cell))));
    return row;
  });
  $("numbers").tBodies[0].replaceChildren(...rows);
}

$("losses").addEventListener("change", (event) => change(() => (state.loss = event.target.value)));
$("scale").addEventListener("input", () => change(() => (state.scale = Number($("scale").value))));
$("preset").addEventListener("change", () => {
  const told = model.PRESETS[$("preset").value];
  if (told) replaceSamples(model.samplesOf(told));
});
$("random").addEventListener("click", () => replaceSamples(model.random()));
$("add-positive").addEventListener("click", () => add(true));
$("add-negative").addEventListener("click", () => add(false));
$("downhill").addEventListener("click", () => {
  if (latest === null) return;
  const { answer, ids } = latest;
  if (answer.gradient.every((part) => part === 0)) {
    say("The gradient is 0: with this loss and scale, training does not move these scores.");
    return;
  }
  change(() => ids.forEach((id, at) => find(id) && (find(id).score = model.rounded(answer.downhill[at]))));
});
$("editor").addEventListener("submit", (event) => event.preventDefault());
$("editor-score").addEventListener("input", () => {
  const score = $("editor-score").valueAsNumber;
  if (selected !== null && Number.isFinite(score)) change(() => (find(selected).score = model.rounded(score)));
});
$("editor-score").addEventListener("blur", drawEditor);
$("flip").addEventListener("click", () => flip(selected));
$("remove").addEventListener("click", () => remove(selected));
window.addEventListener("hashchange", () => {
  ({ state, problem } = model.parse(location.hash));
  selected = null;
  update();
  say(problem);
});
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (width === window.innerWidth) return;
  width = window.innerWidth;
  place();
  if (latest) show(latest.answer, latest.ids);
});

update();
say(problem);
