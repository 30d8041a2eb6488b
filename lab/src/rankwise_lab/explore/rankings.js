// Scores that can be dragged, and lines from them to the ranking by score and to the most violating ranking.

import { curve, keepApart } from "./layout.js";
import { RANGE, rounded } from "./model.js";
import { draw, resize, set, shown, svg } from "./svg.js";

const TOP = 58;
const BOTTOM = 30;
const GAP = 3; // between two marks of one class
const LONGEST_ARROW = 36;
const MOVE_MS = 220;
const KEYS = { ArrowUp: 0.05, ArrowRight: 0.05, ArrowDown: -0.05, ArrowLeft: -0.05, PageUp: 0.5, PageDown: -0.5 };
const still = window.matchMedia("(prefers-reduced-motion: reduce)");

export class Rankings {
  // hooks: move(id, score), select(id), flip(id), remove(id)
  constructor(element, hooks) {
    this.element = element;
    this.hooks = hooks;
    this.marks = new Map(); // by sample id: its handle, its places in both rankings, the lines between
    this.layers = {}; // in paint order: nothing may cover an arrow
    for (const name of ["back", "ticks", "lines", "nodes", "handles", "arrows"]) {
      this.layers[name] = element.appendChild(svg("g", { class: name }));
    }
    this.samples = [];
    this.frame = 0;
  }

  // Put handles where the scores are, at once.
  place(samples, selected, loss, scale) {
    this.samples = samples;
    this.measure();
    const there = new Set(samples.map((one) => one.id));
    for (const [id, mark] of this.marks) if (!there.has(id)) this.drop(id, mark);
    const places = this.spread(samples);
    for (const one of samples) {
      const mark = this.marks.get(one.id) ?? this.add(one);
      if (mark.relevant !== one.relevant) this.dress(mark, one.relevant);
      Object.assign(mark, places.get(one.id));
      set(mark.handle, {
        transform: `translate(${mark.x} ${mark.y})`,
        "aria-valuenow": one.score,
        "aria-valuetext": shown(one.score, 2),
      });
      mark.handle.classList.toggle("selected", one.id === selected);
      this.grow(mark);
    }
    this.drawBack(loss, scale);
    this.drawLines();
  }

  // Show an answer for the samples with these ids.
  show(answer, ids) {
    const largest = Math.max(1e-12, ...answer.gradient.map(Math.abs));
    const name = (list, sign) => list.forEach((at, k) => this.name(this.marks.get(ids[at]), `${sign}${k + 1}`));
    name(answer.positives, "+");
    name(answer.negatives, "−");
    const rank = (ranked) => new Map(answer.negatives.map((at, j) => [at, ranked.ranks[j]]));
    const ranks = { predicted: rank(answer.predicted), violating: rank(answer.violating) };
    for (const which of ["predicted", "violating"]) {
      answer[which].order.forEach((at, place) => {
        const node = this.marks.get(ids[at])[which];
        node.target = this.first + (place + 0.5) * this.row;
        node.rank.textContent = ranks[which].has(at) ? `r = ${ranks[which].get(at)}` : "";
      });
    }
    ids.forEach((id, at) => {
      const mark = this.marks.get(id);
      mark.pull = -answer.gradient[at] / largest;
    });
    this.animate();
  }

  measure() {
    const n = this.samples.length;
    this.width = Math.max(260, Math.floor(this.element.parentElement.clientWidth));
    this.row = Math.max(18, Math.min(34, 400 / n));
    this.narrow = this.width < 480;
    this.height = Math.max(this.narrow ? 480 : 620, n * this.row + TOP + BOTTOM);
    this.row = Math.min(this.narrow ? 36 : 52, (this.height - TOP - BOTTOM) / n);
    this.radius = Math.max(6, Math.min(this.narrow ? 11 : 13, this.row / 2 - 1));
    this.axis = this.narrow ? 26 : 34;
    this.leader = this.narrow ? 12 : 24; // from a tick to its mark
    this.lane = this.narrow ? 5 : 7; // between the two lanes of arrows beside the marks
    this.strip = this.leader + 2 * this.radius + 2 * this.lane + (this.narrow ? 8 : 26);
    this.columns = { predicted: this.width * 0.57, violating: this.width - (this.narrow ? 48 : 76) };
    this.first = (this.height - TOP - BOTTOM - this.row * n) / 2 + TOP;
    resize(this.element, this.width, this.height);
  }

  at(score) {
    return TOP + ((RANGE - score) / (2 * RANGE)) * (this.height - TOP - BOTTOM);
  }

  scoreAt(y) {
    return RANGE - ((y - TOP) / (this.height - TOP - BOTTOM)) * 2 * RANGE;
  }

  axisOf(relevant) {
    return this.axis + (relevant ? 0 : this.strip);
  }

  // Where marks stand: each class in a column of its own, close to the scores, and never on each other.
  spread(samples) {
    const found = new Map();
    const size = 2 * this.radius + GAP;
    for (const relevant of [true, false]) {
      const ordered = samples.filter((one) => one.relevant === relevant).sort((a, b) => b.score - a.score);
      const targets = ordered.map((one) => this.at(one.score));
      const places = keepApart(targets, size, TOP, this.height - BOTTOM);
      const x = this.axisOf(relevant) + this.leader + this.radius;
      ordered.forEach((one, k) => {
        const beside = [places[k - 1], places[k + 1]].filter((y) => y !== undefined);
        const clear = Math.min(...beside.map((y) => Math.abs(y - places[k]) / 2));
        const reach = Math.max(this.radius, Math.min(19, this.strip / 2, clear));
        found.set(one.id, { x, y: places[k], score: targets[k], lane: k % 2, reach });
      });
    }
    return found;
  }

  add(one) {
    const range = { "aria-orientation": "vertical", "aria-valuemin": -RANGE, "aria-valuemax": RANGE };
    const handle = draw(this.layers.handles, "g", { role: "slider", tabindex: 0, ...range });
    draw(handle, "circle", { class: "reach" });
    draw(handle, "rect", { class: "ring" });
    draw(handle, "rect", { class: "body" });
    draw(handle, "text", { class: "label", dy: "0.35em" });
    const mark = { handle, relevant: null, pull: 0, label: "" };
    mark.tick = draw(this.layers.ticks, "path", {});
    mark.arrow = draw(this.layers.arrows, "g", {});
    for (const part of ["halo", "shaft"]) draw(mark.arrow, "path", { class: part });
    for (const which of ["predicted", "violating"]) {
      const node = draw(this.layers.nodes, "g", {});
      draw(node, "rect", { class: "body" });
      draw(node, "text", { class: "label", dy: "0.35em" });
      const rank = draw(node, "text", { class: "rank", dy: "0.35em" });
      mark[which] = { node, rank, y: null, target: null, line: draw(this.layers.lines, "path", {}) };
    }
    this.marks.set(one.id, mark);
    this.dress(mark, one.relevant);
    this.listen(one.id, handle);
    return mark;
  }

  drop(id, mark) {
    for (const part of [mark.handle, mark.tick, mark.arrow, mark.predicted.node, mark.violating.node]) part.remove();
    for (const which of ["predicted", "violating"]) mark[which].line.remove();
    this.marks.delete(id);
  }

  dress(mark, relevant) {
    mark.relevant = relevant;
    const kind = relevant ? "positive" : "negative";
    set(mark.handle, { class: `handle ${kind}`, "aria-label": `${kind}, score` });
    set(mark.tick, { class: `mark ${kind}` });
    set(mark.arrow, { class: `arrow ${kind}` });
    for (const which of ["predicted", "violating"]) {
      set(mark[which].node, { class: `node ${kind}` });
      set(mark[which].line, { class: `line ${kind}` });
    }
    this.grow(mark);
  }

  // Positives are round, negatives square.
  grow(mark) {
    const r = this.radius;
    const shape = (extra) => {
      const half = r + extra;
      return { x: -half, y: -half, width: 2 * half, height: 2 * half, rx: mark.relevant ? half : 4 + extra };
    };
    set(mark.handle.querySelector(".reach"), { r: mark.reach ?? r });
    set(mark.handle.querySelector(".body"), shape(0));
    set(mark.handle.querySelector(".ring"), shape(4));
    for (const which of ["predicted", "violating"]) {
      set(mark[which].node.querySelector(".body"), shape(-1));
      set(mark[which].rank, { x: r + 5 });
    }
    for (const part of [mark.handle, mark.predicted.node, mark.violating.node]) part.classList.toggle("tiny", r < 9);
  }

  name(mark, label) {
    mark.label = label;
    const kind = mark.relevant ? "positive" : "negative";
    set(mark.handle, { "aria-label": `${kind} ${label.slice(1)}, score` });
    for (const part of [mark.handle, mark.predicted.node, mark.violating.node]) {
      part.querySelector(".label").textContent = label;
      part.classList.toggle("long", label.length > 2);
    }
  }

  listen(id, handle) {
    const score = () => this.samples.find((one) => one.id === id).score;
    let grip = null;
    handle.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      handle.setPointerCapture(event.pointerId);
      grip = this.at(score()) - this.local(event);
      handle.focus({ preventScroll: true });
      event.preventDefault();
    });
    // The page must not scroll under a finger that drags; touch-action alone does not hold inside an SVG.
    handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    handle.addEventListener("pointermove", (event) => {
      if (grip !== null) this.hooks.move(id, this.scoreAt(this.local(event) + grip));
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      handle.addEventListener(end, () => (grip = null));
    }
    handle.addEventListener("focus", () => this.hooks.select(id));
    handle.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key in KEYS) this.hooks.move(id, rounded(score() + KEYS[event.key] * (event.shiftKey ? 0.2 : 1)));
      else if (event.key === "Home") this.hooks.move(id, -RANGE);
      else if (event.key === "End") this.hooks.move(id, RANGE);
      else if (event.key === " " || event.key === "Enter") this.hooks.flip(id);
      else if (event.key === "Delete" || event.key === "Backspace") this.hooks.remove(id);
      else return;
      event.preventDefault();
    });
  }

  local(event) {
    return event.clientY - this.element.getBoundingClientRect().top;
  }

  focus(id) {
    this.marks.get(id)?.handle.focus({ preventScroll: true });
  }

  drawBack(loss, scale) {
    const back = this.layers.back;
    back.replaceChildren();
    const across = (kind, score) => {
      const y = this.at(score);
      draw(back, "line", { class: kind, x1: this.axis, x2: this.columns.predicted - 26, y1: y, y2: y });
    };
    for (let score = -RANGE; score <= RANGE; score += 1) {
      across(score === 0 ? "zero" : "tick", score);
      draw(back, "text", { class: "tick", x: this.axis - 8, y: this.at(score), dy: "0.35em" }, shown(score, 0));
    }
    const [y1, y2] = [TOP - 12, this.height - BOTTOM + 12];
    for (const relevant of [true, false]) {
      const x = this.axisOf(relevant);
      draw(back, "line", { class: "axis", x1: x, x2: x, y1, y2 });
    }
    if (loss === "zero-one") {
      for (const score of [scale, -scale].filter((one) => Math.abs(one) <= RANGE)) across("margin", score);
    }
    const head = (x, first, second) => {
      draw(back, "text", { class: "head", x, y: 15 }, first);
      draw(back, "text", { class: "head soft", x, y: 31 }, second);
    };
    const middle = (relevant) => this.axisOf(relevant) + this.leader + this.radius;
    draw(back, "text", { class: "head", x: (middle(true) + middle(false)) / 2, y: 15 }, "scores");
    draw(back, "text", { class: "head soft positive", x: middle(true), y: 31 }, this.narrow ? "pos." : "positives");
    draw(back, "text", { class: "head soft negative", x: middle(false), y: 31 }, this.narrow ? "neg." : "negatives");
    head(this.columns.predicted, "ranking", "by score");
    const what = loss === "zero-one" ? "labelling" : "ranking";
    head(this.columns.violating, this.narrow ? "violating" : "most violating", what);
  }

  drawLines() {
    const { predicted, violating } = this.columns;
    const r = this.radius;
    for (const mark of this.marks.values()) {
      for (const [which, x] of [["predicted", predicted], ["violating", violating]]) {
        const place = mark[which];
        place.node.classList.toggle("unplaced", place.y === null);
        if (place.y !== null) set(place.node, { transform: `translate(${x} ${place.y})` });
      }
      if (mark.predicted.y !== null) {
        set(mark.predicted.line, { d: curve(mark.x + r, mark.y, predicted - r, mark.predicted.y) });
        const after = predicted + r + (mark.relevant ? 0 : this.narrow ? 35 : 38); // clear of "r = 2"
        set(mark.violating.line, { d: curve(after, mark.predicted.y, violating - r, mark.violating.y) });
      }
      this.drawTick(mark);
      this.drawArrow(mark);
    }
  }

  // The exact score on the axis, and a thin line from there to the mark.
  drawTick(mark) {
    const axis = this.axisOf(mark.relevant);
    set(mark.tick, { d: `M${axis - 4} ${mark.score}H${axis + 4}L${mark.x - this.radius} ${mark.y}` });
  }

  // Which way a step of training pushes the score: against the gradient. Arrows of neighbours have a lane each.
  drawArrow(mark) {
    const size = 2 * this.radius + GAP;
    const length = Math.min(LONGEST_ARROW, 2 * size - 8) * Math.abs(mark.pull);
    const up = mark.pull > 0 ? -1 : 1;
    const x = mark.x + this.radius + this.lane * (mark.lane + 1);
    const to = mark.y + up * (4 + length);
    const [tip, wing] = [up * 4, this.narrow ? 2.5 : 3.5];
    const shape = `M${x} ${mark.y}V${to}M${x - wing} ${to - tip}L${x} ${to}L${x + wing} ${to - tip}`;
    for (const part of mark.arrow.children) set(part, { d: length > 0.01 ? shape : "M0 0" });
  }

  // Places move to where they belong in a moment, so that the eye can follow.
  animate() {
    cancelAnimationFrame(this.frame);
    const places = [...this.marks.values()].flatMap((mark) => [mark.predicted, mark.violating]);
    for (const place of places) place.from = place.y ?? place.target;
    const begin = performance.now();
    const move = (now) => {
      const part = still.matches ? 1 : Math.min(1, Math.max(0, (now - begin) / MOVE_MS));
      const eased = 1 - (1 - part) ** 3;
      for (const place of places) if (place.target !== null) place.y = place.from + (place.target - place.from) * eased;
      this.drawLines();
      if (part < 1) this.frame = requestAnimationFrame(move);
    };
    move(begin);
  }
}
