// Figures in words.

const thousands = n => n.toLocaleString('en-US');
// duration is a time in nanoseconds, with three digits or so.
const duration = ns => {
  const [unit, of] = [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]].find(([, of]) => ns >= of) || ['s', 1];
  const n = ns / of;
  return `${n >= 100 ? n.toFixed(0) : n.toPrecision(3)} ${unit}`;
};
const percent = (n, of) => {
  const p = of ? (100 * n) / of : 0;
  return (p !== 0 && p < 0.1 ? p.toFixed(3) : p.toFixed(2)) + '%';
};
// signed is a change in points of 100.
const signed = points => (points < 0 ? '\u2212' : '+') + Math.abs(points).toFixed(2);

// bytes is an amount of memory, with three digits or so.
const bytes = n => {
  const [unit, of] = [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]].find(([, of]) => n >= of) || ['B', 1];
  return `${n / of >= 100 || of === 1 ? Math.round(n / of) : (n / of).toPrecision(3)} ${unit}`;
};
