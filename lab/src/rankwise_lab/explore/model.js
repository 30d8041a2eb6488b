// The state of the page: samples, loss, scale and step; it lives in the fragment of the address.

export const RANGE = 3; // scores on the axis are within ±RANGE
export const MOST = 40; // samples the drawing has room for
export const LOSSES = ["ap", "ndcg", "mrr", "auc", "zero-one"];
const LARGEST_SCALE = 4;

export const PRESETS = {
  figure: "p2,p0,n1.5,n1,n0.9,n0.8,n0.7,n0.6,n0.5,n0.4,n0.3,n-1,n-2",
  mixed: "p1.6,n1.1,p0.7,n0.35,n-0.05,p-0.4,n-0.9,n-1.5",
  separated: "p0.9,p0.6,p0.3,n0.15,n-0.15,n-0.5,n-0.9",
  reversed: "n2.2,n1.6,n1.1,n0.5,p-0.6,p-1.2,p-1.8",
  ties: "p1,n1,n1,p0,p0,n0,n0,n-1,p-1",
};

let counter = 0;

export function sample(relevant, score) {
  counter += 1;
  return { id: counter, relevant, score: rounded(score) };
}

// Two decimals are what the page shows: it computes with what it shows.
export function rounded(score) {
  return Number(Math.max(-RANGE, Math.min(RANGE, score)).toFixed(2)) + 0;
}

export function samplesOf(text) {
  const parts = text.split(",");
  if (parts.length > MOST) return null;
  const samples = [];
  for (const part of parts) {
    const found = /^([pn])(-?\d{1,4}(?:\.\d{1,6})?)$/.exec(part);
    if (!found) return null;
    samples.push(sample(found[1] === "p", Number(found[2])));
  }
  return bothClasses(samples) ? samples : null;
}

export function bothClasses(samples) {
  return samples.some((one) => one.relevant) && samples.some((one) => !one.relevant);
}

export function random() {
  const positives = 2 + Math.floor(Math.random() * 4);
  const negatives = 4 + Math.floor(Math.random() * 7);
  const bell = () => Math.random() + Math.random() + Math.random() - 1.5;
  return Array.from({ length: positives + negatives }, (_, k) =>
    sample(k < positives, (k < positives ? 0.5 : -0.3) + 1.6 * bell()),
  );
}

// A score for a new sample, clear of the others as far as there is room.
export function freeScore(samples, relevant) {
  let best = { score: 0, clear: -1 };
  for (let k = -20; k <= 20; k += 1) {
    const score = k / 10 + (relevant ? 0.5 : -0.5);
    const clear = Math.min(0.4, ...samples.map((one) => Math.abs(one.score - score))) - Math.abs(k) / 200;
    if (clear > best.clear) best = { score, clear };
  }
  return best.score;
}

// The state in a fragment of the address; `problem` says what could not be read.
export function parse(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const problems = [];
  const read = (name, fallback, convert) => {
    if (!fields.has(name)) return fallback;
    const value = convert(fields.get(name));
    if (value === null) problems.push(name);
    return value ?? fallback;
  };
  const number = (most) => (text) => (/^\d{1,4}(\.\d{1,4})?$/.test(text) && Number(text) <= most ? Number(text) : null);
  const state = {
    loss: read("loss", "ap", (text) => (LOSSES.includes(text) ? text : null)),
    scale: read("scale", 1, number(LARGEST_SCALE)),
    samples: read("samples", null, samplesOf) ?? samplesOf(PRESETS.mixed),
    step: read("step", 1, (text) => (/^[1-9]\d{0,3}$/.test(text) ? Number(text) : null)) - 1,
  };
  const problem = problems.length
    ? `The ${problems.join(" and ")} in the address cannot be read; the default is shown instead.`
    : "";
  return { state, problem };
}

export function format(state) {
  const samples = state.samples.map((one) => `${one.relevant ? "p" : "n"}${one.score}`).join(",");
  return `#loss=${state.loss}&scale=${state.scale}&samples=${samples}&step=${state.step + 1}`;
}

// The request that asks for an answer.
export function request(state) {
  return {
    scores: state.samples.map((one) => one.score),
    relevant: state.samples.map((one) => one.relevant),
    loss: state.loss,
    scale: state.scale,
  };
}
