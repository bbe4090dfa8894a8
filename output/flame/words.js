// Figures as text.

const thousands = n => n.toLocaleString('en-US');
// duration formats nanoseconds in about three digits.
const duration = ns => {
  const [unit, of] = [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]].find(([, of]) => ns >= of) || ['s', 1];
  const n = ns / of;
  return `${n >= 100 ? n.toFixed(0) : n.toPrecision(3)} ${unit}`;
};
const percent = (n, of) => {
  const p = of ? (100 * n) / of : 0;
  return (p !== 0 && p < 0.1 ? p.toFixed(3) : p.toFixed(2)) + '%';
};
// signed formats a change in percentage points.
const signed = points => (points < 0 ? '\u2212' : '+') + Math.abs(points).toFixed(2);

// bytes formats an amount of memory in about three digits.
const bytes = n => {
  const [unit, of] = [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]].find(([, of]) => n >= of) || ['B', 1];
  return `${n / of >= 100 || of === 1 ? Math.round(n / of) : (n / of).toPrecision(3)} ${unit}`;
};
