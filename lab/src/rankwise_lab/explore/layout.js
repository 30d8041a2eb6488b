// Where marks stand and how lines run: plain geometry.

// A line that leaves and arrives horizontally.
export function curve(x0, y0, x1, y1) {
  const middle = (x0 + x1) / 2;
  return `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}`;
}

// Places at least `size` apart, in the order of their ascending targets and as close to these as possible (least
// squares), from `first` to `last`. Less k · size, the k-th place may not be below the one before: those that would be
// are pooled at their mean.
export function keepApart(targets, size, first, last) {
  const pools = [];
  targets.forEach((target, k) => {
    pools.push({ sum: target - k * size, count: 1 });
    while (pools.length > 1) {
      const [before, after] = pools.slice(-2);
      if (before.sum / before.count <= after.sum / after.count) break;
      pools.splice(-2, 2, { sum: before.sum + after.sum, count: before.count + after.count });
    }
  });
  const most = Math.max(first, last - (targets.length - 1) * size);
  const bases = pools.flatMap((pool) => Array(pool.count).fill(pool.sum / pool.count));
  return bases.map((base, k) => Math.max(first, Math.min(most, base)) + k * size);
}
