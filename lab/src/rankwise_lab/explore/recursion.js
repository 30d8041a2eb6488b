// Algorithm 1, one call at a time: where the ranks may still lie, f_m, and what is known so far.

import { draw, html, resize, set, shown } from "./svg.js";

const PLAY_MS = 1100;

export class Recursion {
  // hooks: step(k) is told when another step is shown
  constructor(parts, hooks) {
    this.parts = parts;
    this.hooks = hooks;
    this.calls = [];
    this.at = 0;
    this.timer = null;
    const go = {
      first: () => 0,
      previous: () => this.at - 1,
      next: () => this.at + 1,
      last: () => this.calls.length - 1,
    };
    for (const [name, where] of Object.entries(go)) {
      parts[name].addEventListener("click", () => {
        this.pause();
        this.go(where());
      });
    }
    parts.play.addEventListener("click", () => (this.timer === null ? this.play() : this.pause()));
    parts.scrub.addEventListener("input", () => {
      this.pause();
      this.go(Number(parts.scrub.value) - 1);
    });
  }

  show(answer, step) {
    this.answer = answer;
    this.calls = answer.calls ?? [];
    const none = answer.calls === null;
    this.parts.panel.hidden = none;
    this.parts.none.hidden = !none;
    if (none) this.pause();
    this.at = Math.max(0, Math.min(step, this.calls.length - 1));
    if (!none) this.draw();
  }

  go(step) {
    this.at = Math.max(0, Math.min(step, this.calls.length - 1));
    this.draw();
    this.hooks.step(this.at);
  }

  play() {
    if (this.at === this.calls.length - 1) this.go(0);
    set(this.parts.play, { "aria-pressed": "true" }, "Pause");
    this.timer = setInterval(() => {
      if (this.at < this.calls.length - 1) this.go(this.at + 1);
      if (this.at >= this.calls.length - 1) this.pause();
    }, PLAY_MS);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    set(this.parts.play, { "aria-pressed": "false" }, "Play");
  }

  draw() {
    const { parts, calls, at } = this;
    const call = calls[at];
    const last = at === calls.length - 1;
    if (document.activeElement === parts.next && last) parts.previous.focus();
    parts.first.disabled = parts.previous.disabled = at === 0;
    parts.next.disabled = parts.last.disabled = last;
    set(parts.scrub, { max: calls.length });
    parts.scrub.value = String(at + 1);
    parts.count.textContent = `call ${at + 1} of ${calls.length}`;
    parts.call.textContent = `OptRanks(${call.left}, ${call.right}, ${call.low}, ${call.high})`;
    const told = sentences(call);
    if (last) told.push(`All ranks are known. The algorithm searched the ranks of ${this.evaluated()} negatives.`);
    parts.said.replaceChildren(...told.map((text) => html("p", {}, text)));
    const doing = call.m ? "search" : "fill";
    for (const line of parts.code.children) line.classList.toggle("now", line.dataset.when === doing);
    this.drawGrid(call);
    this.drawCurve(call);
  }

  evaluated() {
    return `${this.calls.filter((call) => call.m > 0).length} of ${this.answer.negatives.length}`;
  }

  // Ranks known after the calls so far, by negative.
  known() {
    const ranks = new Map();
    for (const call of this.calls.slice(0, this.at + 1)) {
      if (call.m) ranks.set(call.m, call.opt);
      else for (let j = call.left; j <= call.right; j += 1) ranks.set(j, call.opt);
    }
    return ranks;
  }

  // Segments that wait for a call of their own: line 8's lie on a stack, line 7's are taken at once.
  waiting() {
    const stack = [];
    for (const call of this.calls.slice(0, this.at + 1)) {
      stack.pop();
      if (!call.m) continue;
      if (call.m < call.right) stack.push({ left: call.m + 1, right: call.right, low: call.opt, high: call.high });
      if (call.left < call.m) stack.push({ left: call.left, right: call.m - 1, low: call.low, high: call.opt });
    }
    return stack;
  }

  // Columns are negatives, rows are ranks.
  drawGrid(call) {
    const element = this.parts.grid;
    const [n, rows] = [this.answer.negatives.length, this.answer.positives.length + 1];
    const width = Math.max(240, Math.floor(element.parentElement.clientWidth));
    const wide = width >= 480;
    const [left, top] = [44, 28];
    const w = Math.min(60, (width - left - (wide ? 84 : 4)) / n);
    const h = Math.max(14, Math.min(42, 280 / rows));
    const [x, y] = [(j) => left + (j - 0.5) * w, (i) => top + (i - 0.5) * h]; // the middle of a cell
    resize(element, width, top + rows * h + 12);
    element.replaceChildren();
    const box = (kind, { left, right, low, high }, inset) => {
      const [x0, y0] = [x(left) - w / 2 + inset, y(low) - h / 2 + inset];
      const size = { width: (right - left + 1) * w - 2 * inset, height: (high - low + 1) * h - 2 * inset };
      draw(element, "rect", { class: kind, x: x0, y: y0, ...size, rx: 5 });
    };
    box("current", call, 0.5);
    draw(element, "text", { class: "corner", x: 0, y: 14 }, "rank ↓");
    for (let i = 1; i <= rows; i += 1) {
      draw(element, "text", { class: "row", x: left - 10, y: y(i), dy: "0.35em" }, String(i));
      const beside = i < rows ? `above +${i}` : `below +${i - 1}`;
      if (wide) draw(element, "text", { class: "beside", x: x(n + 0.5) + 10, y: y(i), dy: "0.35em" }, beside);
      for (let j = 1; j <= n; j += 1) draw(element, "circle", { class: "cell", cx: x(j), cy: y(i), r: 2 });
    }
    const every = Math.ceil(24 / w); // labels must not touch
    for (let j = 1; j <= n; j += 1) {
      const room = call.m === 0 || Math.abs(j - call.m) >= every;
      if (j === call.m) draw(element, "text", { class: "column now", x: x(j), y: 16 }, `−${j}`);
      else if ((j - 1) % every === 0 && room) draw(element, "text", { class: "column", x: x(j), y: 16 }, `−${j}`);
    }
    for (const segment of this.waiting()) box("waiting", segment, 3.5);
    if (call.m) box("searched", { ...call, left: call.m, right: call.m }, 3);
    const r = Math.min(26, w, h) / 2 - 3;
    for (const [j, rank] of this.known()) {
      const fresh = call.m ? j === call.m : call.left <= j && j <= call.right;
      const square = { x: x(j) - r, y: y(rank) - r, width: 2 * r, height: 2 * r, rx: 4 };
      draw(element, "rect", { class: fresh ? "known now" : "known", ...square });
    }
    const known = [...this.known()].sort((a, b) => a[0] - b[0]).map(([j, rank]) => `${j}: ${rank}`);
    set(element, { "aria-label": `Ranks of negatives that are known after this call: ${known.join(", ")}` });
  }

  drawCurve(call) {
    const element = this.parts.curve;
    const width = Math.max(220, Math.min(460, Math.floor(element.parentElement.clientWidth)));
    const [height, side, top, bottom] = [210, 20, 34, 36];
    const rows = this.answer.positives.length + 1;
    const low = Math.min(...call.values);
    const span = Math.max(1e-12, Math.max(...call.values) - low);
    const x = (i) => side + ((i - 0.5) / rows) * (width - 2 * side);
    const y = (value) => top + 10 + (1 - (value - low) / span) * (height - top - bottom - 20);
    resize(element, width, height);
    element.replaceChildren();
    const [from, to] = [x(call.low - 0.5), x(call.high + 0.5)];
    const area = { x: from, y: top - 8, width: to - from, height: height - top - bottom + 16, rx: 5 };
    draw(element, "rect", { class: "range", ...area });
    const every = Math.ceil((22 * rows) / (width - 2 * side));
    for (let i = 1; i <= rows; i += 1) {
      const kind = call.low <= i && i <= call.high ? "place" : "place out";
      const room = (i - 1) % every === 0 && (i === call.opt || Math.abs(i - call.opt) >= every);
      if (room || i === call.opt) draw(element, "text", { class: kind, x: x(i), y: height - bottom + 25 }, String(i));
    }
    const name = `f${below(call.m)}`;
    const best = `greatest at i = ${call.opt}, so opt${below(call.m)} = ${call.opt}`;
    const said = call.m
      ? [`${name}(i) for each rank i that is still possible`, best]
      : ["Only one rank is possible, so there is nothing to compare", `rank ${call.opt} for all`];
    this.parts.caption.textContent = said[0];
    draw(element, "text", { class: "peak", x: width / 2, y: 16 }, said[1]);
    if (call.m) this.drawValues(call, x, y);
    else draw(element, "circle", { class: "only", cx: x(call.opt), cy: height / 2, r: 6 });
    const values = call.values.map((value, k) => `${call.low + k}: ${shown(value)}`).join(", ");
    set(element, { "aria-label": call.m ? `${name} by rank, ${values}; ${said[1]}` : said[1] });
  }

  drawValues(call, x, y) {
    const points = call.values.map((value, k) => `${x(call.low + k)} ${y(value)}`);
    draw(this.parts.curve, "path", { class: "curve", d: `M${points.join("L")}` });
    call.values.forEach((value, k) => {
      const rank = call.low + k;
      const [kind, r] = rank === call.opt ? ["dot best", 6] : ["dot", 3.5];
      const data = { "data-rank": rank, "data-value": value };
      draw(this.parts.curve, "circle", { class: kind, cx: x(rank), cy: y(value), r, ...data });
    });
  }
}

function below(number) {
  return [...String(number)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)]).join("");
}

function negatives(from, to) {
  return from === to ? `negative ${from}` : `negatives ${from} to ${to}`;
}

function ranks(from, to) {
  return from === to ? `rank ${from}` : `ranks ${from} to ${to}`;
}

// What a call does, in words.
function sentences(call) {
  const all = negatives(call.left, call.right).replace("n", "N");
  if (call.m === 0) return [`${all} can only have rank ${call.opt}, so nothing needs to be tried.`];
  const which = call.left === call.right ? "It is the only one" : `Negative ${call.m} is in the middle`;
  const found = `f${below(call.m)} is greatest at rank ${call.opt}`;
  const said = [`${all} can have ${ranks(call.low, call.high)}. ${which}; ${found}.`];
  const then = [];
  if (call.left < call.m) then.push(`${ranks(call.low, call.opt)} for ${negatives(call.left, call.m - 1)}`);
  if (call.m < call.right) then.push(`${ranks(call.opt, call.high)} for ${negatives(call.m + 1, call.right)}`);
  if (then.length) said.push(`Ranks never fall from one negative to the next. This leaves ${then.join(", and ")}.`);
  return said;
}
