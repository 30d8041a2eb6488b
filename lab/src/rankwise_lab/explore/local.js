// What the page says of a query: the library's numbers, computed anew. Problems are small, so everything is written for
// clarity. Tests compare the two.

const STRIDE = 0.25; // how far “Train a step” moves the sample that moves most
const TIE = 1e-13; // a rank that loses by less than this fraction of what was summed up counts as equally good

// Losses Δ = (1/C) Σ_k w(k) (D(k) − D(k + c_k)), by weight w and discount D; C is Σ_k w(k) D(k), or PN for AUC.
const DISCOUNTED = {
  ap: { weight: (k) => k, discount: (m) => 1 / m },
  ndcg: { weight: () => 1, discount: (m) => 1 / Math.log2(1 + m) },
  mrr: { weight: (k) => (k === 1 ? 1 : 0), discount: (m) => 1 / m },
  auc: { weight: () => 1, discount: (m) => -m, perPair: true },
};

// All that the page shows of a request. positives, negatives: positions by descending score; gap: F(R) − F(R*); downhill:
// the scores after a step against the gradient; predicted, violating: the ranking by score and the most violating one;
// calls: Algorithm 1 on the query, each with f_m(i) − f_m(low) at i = low..high, or null for the 0-1 loss.
export function explain({ scores, relevant, loss, scale }) {
  const byScore = (wanted) =>
    scores.map((_, k) => k).filter((k) => relevant[k] === wanted).sort((a, b) => scores[b] - scores[a] || a - b);
  const query = { scores, relevant, loss, scale, positives: byScore(true), negatives: byScore(false) };
  const found = loss === "zero-one" ? labels(query) : rankings(query);
  const longest = Math.max(...found.gradient.map(Math.abs));
  const stride = longest > 0 ? STRIDE / longest : 0;
  return {
    loss,
    scale,
    positives: query.positives,
    negatives: query.negatives,
    ...found,
    gap: found.value - scale * found.violating.loss,
    downhill: scores.map((score, k) => score - stride * found.gradient[k]),
  };
}

// One plus the positives above each negative; a negative is above the positives it ties with.
function ranksByScore({ scores, positives, negatives }) {
  return negatives.map((j) => 1 + positives.filter((i) => scores[i] > scores[j]).length);
}

function countsAbove(ranks, nPos) {
  return Array.from({ length: nPos }, (_, k) => ranks.filter((rank) => rank <= k + 1).length);
}

function ranked({ positives, negatives }, ranks, loss) {
  const order = [];
  const pattern = [];
  for (let rank = 1; rank <= positives.length + 1; rank += 1) {
    negatives.forEach((at, j) => {
      if (ranks[j] !== rank) return;
      order.push(at);
      pattern.push("-");
    });
    if (rank > positives.length) continue;
    order.push(positives[rank - 1]);
    pattern.push("+");
  }
  return { order, pattern: pattern.join(""), ranks, above: countsAbove(ranks, positives.length), loss };
}

// J, its gradient, both rankings and the calls of Algorithm 1, for a loss of rankings.
function rankings(query) {
  const { scores, positives, negatives, scale } = query;
  const [nPos, nNeg] = [positives.length, negatives.length];
  const { weight, discount, perPair } = DISCOUNTED[query.loss];
  let norm = 0;
  for (let k = 1; k <= nPos; k += 1) norm += perPair ? nNeg : weight(k) * discount(k);
  const lossOf = (above) =>
    above.reduce((sum, c, k) => sum + weight(k + 1) * (discount(k + 1) - discount(k + 1 + c)), 0) / norm;
  // f_j(i+1) − f_j(i), in units of 2/(PN): what negative j gains by going below positive i.
  const factor = (scale * nPos * nNeg) / (2 * norm);
  const step = (i, j) =>
    scores[positives[i - 1]] - scores[negatives[j - 1]] - factor * weight(i) * (discount(i + j - 1) - discount(i + j));
  const calls = recursion(nPos, nNeg, step);
  const ranks = [];
  for (const call of calls) {
    if (call.m) ranks[call.m - 1] = call.opt;
    else for (let j = call.left; j <= call.right; j += 1) ranks[j - 1] = call.opt;
  }
  const violating = ranked(query, ranks, lossOf(countsAbove(ranks, nPos)));
  const gradient = scores.map(() => 0);
  const unit = 2 / (nPos * nNeg);
  share(scores, negatives, (j) => unit * (nPos + 1 - ranks[j]), gradient);
  share(scores, positives, (k) => -unit * violating.above[k], gradient);
  const byScore = ranksByScore(query);
  return {
    value: scale * violating.loss + gradient.reduce((sum, part, k) => sum + part * scores[k], 0),
    gradient,
    predicted: ranked(query, byScore, lossOf(countsAbove(byScore, nPos))),
    violating,
    calls: calls.map((call) => ({ ...call, values: call.values.map((value) => value * unit) })),
  };
}

// Gradients of one class, whose samples are in the order of their scores: those of equal score share theirs.
function share(scores, samples, part, gradient) {
  for (let from = 0, to; from < samples.length; from = to) {
    to = from;
    let sum = 0;
    while (to < samples.length && scores[samples[to]] === scores[samples[from]]) sum += part(to++);
    for (let k = from; k < to; k += 1) gradient[samples[k]] = sum / (to - from);
  }
}

// Algorithm 1: its calls, in order. values are f_m at low … high, less f_m(low).
function recursion(nPos, nNeg, step) {
  const calls = [];
  const optRanks = (left, right, low, high) => {
    if (left > right) return;
    if (low === high) {
      calls.push({ left, right, low, high, m: 0, opt: low, values: [0] }); // line 2
      return;
    }
    const m = Math.floor((left + right) / 2); // lines 4 and 5
    const { opt, values } = bestRank(m, low, high, step); // line 6
    calls.push({ left, right, low, high, m, opt, values });
    optRanks(left, m - 1, low, opt); // line 7
    optRanks(m + 1, right, opt, high); // line 8
  };
  optRanks(1, nNeg, 1, nPos + 1);
  return calls;
}

// The largest of the best ranks of negative j from low to high, and f_j at each of them.
function bestRank(j, low, high, step) {
  const values = [0];
  let [opt, lost, total] = [low, 0, 0]; // since the best rank: the sum of steps, and of their magnitudes
  for (let i = low; i < high; i += 1) {
    const rise = step(i, j);
    values.push(values.at(-1) + rise);
    lost += rise;
    total += Math.abs(rise);
    if (lost + TIE * total >= 0) opt = i + 1;
    if (lost > 0) total = 0;
    lost = Math.min(lost, 0);
  }
  return { opt, values };
}

// J, its gradient and both labellings read as rankings, for the 0-1 loss: a hinge for each sample.
function labels(query) {
  const { scores, relevant, positives, negatives, scale } = query;
  const n = scores.length;
  const margins = scores.map((score, k) => (relevant[k] ? score : -score));
  const wrong = margins.map((margin) => scale - margin > 0);
  const count = (flags) => flags.filter(Boolean).length;
  const calledPositive = count(negatives.map((k) => wrong[k])); // negatives that are
  const rightPositives = positives.length - count(positives.map((k) => wrong[k]));
  const ranks = negatives.map((_, j) => (j < calledPositive ? 1 : rightPositives + 1));
  return {
    value: margins.reduce((sum, margin) => sum + Math.max(0, scale - margin), 0) / n,
    gradient: wrong.map((is, k) => (is ? (relevant[k] ? -1 : 1) / n : 0)),
    predicted: ranked(query, ranksByScore(query), count(margins.map((margin) => margin <= 0)) / n),
    violating: ranked(query, ranks, count(wrong) / n),
    calls: null,
  };
}
