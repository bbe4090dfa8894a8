// Layout and painting. A view, a zoom and a width become rows of boxes, and the visible ones are painted. The canvas is
// never larger than the window, however deep the stacks are.

const rowHeight = 18, narrowest = 0.4, fontSize = 12;

// By kind: legend, hue, saturation, lightness. Greens are compiled Java.
const kinds = [
  ['Java, compiled', 120, 50, 72], ['Java, C1', 75, 62, 70], ['Java, interpreted', 45, 28, 78], ['Java, inlined', 178, 50, 72],
  ['JVM and native', 8, 72, 76], ['kernel', 28, 90, 70], ['gap', 0, 0, 72], ['thread', 265, 50, 82], ['truncated', 330, 35, 78],
  ['state', 215, 55, 78], ['folded', 0, 0, 85],
];

const colours = new Map();

// colour: the kind sets the hue, and the name sets the shade, so that neighbouring frames can be distinguished.
function colour(kind, name, dark) {
  const shade = name < 0 ? 0 : (Math.imul(name + 1, 0x9e3779b1) >>> 28) - 8;
  const key = (kind * 32 + shade + 16) * 2 + (dark ? 1 : 0);
  let c = colours.get(key);
  if (!c) {
    const [, h, s, l] = kinds[kind];
    c = `hsl(${h} ${dark ? s * 0.7 : s}% ${(dark ? l - 38 : l) + shade * 0.7}%)`;
    colours.set(key, c);
  }
  return c;
}

// layout makes the rows of everything under zoom, with zoom's callers above it, in pixels. A box is [node, x, width].
// Boxes that are too narrow to be seen are left out.
function layout(view, zoom, width) {
  const rows = [];
  for (let n = zoom; n !== null; n = view.parent(n)) rows[view.depth(n)] = [[n, 0, width]];
  const scale = width / view.total(zoom), origin = view.start(zoom);
  const pending = [zoom];
  let boxes = rows.length;
  const visit = n => {
    const w = view.total(n) * scale;
    if (w < narrowest) return;
    const depth = view.depth(n);
    (rows[depth] || (rows[depth] = [])).push([n, (view.start(n) - origin) * scale, w]);
    boxes++;
    pending.push(n);
  };
  while (pending.length) view.each(pending.pop(), visit);
  for (const row of rows) if (row.length > 1) row.sort((a, b) => a[1] - b[1]);
  return {rows, boxes, zoomDepth: view.depth(zoom)};
}

// boxAt returns the box of a row at x.
function boxAt(row, x) {
  let low = 0, high = row.length - 1;
  while (low <= high) {
    const mid = (low + high) >> 1, box = row[mid];
    if (x < box[1]) high = mid - 1;
    else if (x >= box[1] + box[2]) low = mid + 1;
    else return box;
  }
  return null;
}

// matches are the boxes of found frames, from left to right and from the root on.
function matches(plan, view, hit) {
  const found = [];
  for (const row of plan.rows) for (const box of row) if (view.name(box[0]) >= 0 && hit[view.name(box[0])]) found.push(box);
  return found.sort((a, b) => a[1] - b[1] || view.depth(a[0]) - view.depth(b[0])).map(box => box[0]);
}

// hottest returns the last frame with half of node's samples on the path along the widest callees.
function hottest(view, node) {
  const half = view.total(node) / 2;
  for (let at = node; ;) {
    let widest = null;
    view.each(at, n => {
      if (widest === null || view.total(n) > view.total(widest)) widest = n;
    });
    if (widest === null || view.total(widest) < half) return at;
    at = widest;
  }
}

const nameOf = id => (id < 0 ? 'all' : names[id]);

// shorter removes a package from a Java name that does not fit.
function shorter(id) {
  const name = names[id];
  if (kindOf(id) > 3) return name;
  const method = name.lastIndexOf('.'), pkg = Math.max(name.lastIndexOf('.', method - 1), name.lastIndexOf('/', method - 1));
  return method > 0 && pkg > 0 ? name.slice(pkg + 1) : name;
}

// fit cuts a name to a number of characters. It returns nothing rather than a single letter.
function fit(id, room) {
  let text = nameOf(id);
  if (text.length > room && id >= 0) text = shorter(id);
  if (text.length <= room) return text;
  return room < 4 ? '' : text.slice(0, room - 1) + '\u2026';
}

// sized sets a canvas's size in CSS pixels, clears it, and returns its context.
function sized(canvas, width, height, font) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = width + 'px';
    canvas.style.height = height + 'px';
  }
  const g = canvas.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = font;
  g.textBaseline = 'middle';
  return g;
}

// paint draws the rows between top and bottom of the window. look has everything except the layout: {icicle, dark, hit,
// selected, hovered}; colour if nodes have other colours than their kinds'; and hatch, which is drawn over the part of
// a frame that is a guess.
function paint(canvas, plan, view, top, width, height, look) {
  const g = sized(canvas, width, height, `${fontSize}px ui-monospace, Menlo, Consolas, monospace`);
  const letter = g.measureText('M').width;
  const first = Math.floor(top / rowHeight), last = Math.ceil((top + height) / rowHeight);
  for (let i = first; i <= last; i++) {
    const depth = rowAt(plan, i, look.icicle), row = plan.rows[depth];
    if (row) paintRow(g, row, depth, i * rowHeight - top, view, plan, look, letter);
  }
}

// rowAt converts row i from the top of the graph to the depth of its frames, and back.
function rowAt(plan, i, icicle) { return icicle ? i : plan.rows.length - 1 - i; }

function paintRow(g, row, depth, y, view, plan, look, letter) {
  const ink = look.dark ? '#eee' : '#111';
  for (const [node, x, w] of row) {
    const id = view.name(node), found = look.hit && id >= 0 && look.hit[id];
    g.globalAlpha = depth < plan.zoomDepth ? 0.5 : look.hit && !found ? 0.45 : 1;
    g.fillStyle = found ? (look.dark ? '#a02cc8' : '#e37bff') : id < 0 ? (look.dark ? '#444' : '#ddd') :
      look.colour ? look.colour(node) : colour(kindOf(id), id, look.dark);
    g.fillRect(x, y, w > 2 ? w - 0.6 : w, rowHeight - 1);
    const guess = look.hatch ? w * view.guess(node) / view.total(node) : 0;
    if (guess >= 2) { // a node's own samples are at the right end
      g.fillStyle = look.hatch;
      g.fillRect(x + w - guess, y, guess - 0.6, rowHeight - 1);
    }
    const room = Math.floor((w - 6) / letter);
    if (room > 1) {
      g.globalAlpha = depth < plan.zoomDepth ? 0.7 : 1;
      g.fillStyle = ink;
      g.fillText(fit(id, room), x + 3, y + rowHeight / 2);
    }
    g.globalAlpha = 1;
    if (node === look.selected || node === look.hovered) {
      g.strokeStyle = ink;
      g.lineWidth = node === look.selected ? 2 : 1;
      g.strokeRect(x + 0.5, y + 0.5, Math.max(w - 1.5, 1), rowHeight - 2);
    }
  }
}

const hatches = new Map();

// hatchOf returns a pattern of thin stripes.
function hatchOf(dark) {
  if (!hatches.has(dark)) {
    const stripe = document.createElement('canvas');
    stripe.width = stripe.height = 6;
    const g = stripe.getContext('2d');
    g.strokeStyle = dark ? '#fffb' : '#0009';
    g.beginPath();
    for (const at of [-6, 0, 6]) {
      g.moveTo(at - 1, 7);
      g.lineTo(at + 7, -1);
    }
    g.stroke();
    hatches.set(dark, g.createPattern(stripe, 'repeat'));
  }
  return hatches.get(dark);
}

// legendOf makes a line of a legend.
function legendOf(text, fill, hatched) {
  const li = document.createElement('li'), ns = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(ns, 'svg'), box = document.createElementNS(ns, 'rect');
  box.setAttribute('width', 11);
  box.setAttribute('height', 11);
  box.setAttribute('fill', fill);
  svg.append(box);
  if (hatched) {
    const lines = document.createElementNS(ns, 'path');
    lines.setAttribute('d', 'M0 4L4 0M0 11L11 0M7 11L11 7');
    lines.setAttribute('stroke', 'currentColor');
    svg.append(lines);
  }
  li.append(svg, text);
  return li;
}

const legendOfGuess = () => legendOf('guess: another method inlined there may have run', 'transparent', true);

// guessText returns how much of a frame is a guess, as text.
function guessText(view, node) {
  const n = view.guess(node);
  return n ? `${percent(n, view.total(node))} of it guessed; ` : '';
}

// drawLegend explains the colours of those kinds that names have.
function drawLegend(list, dark) {
  const used = new Set();
  for (let i = 0; i < names.length; i++) used.add(kindOf(i));
  list.replaceChildren(...kinds.map(([text], kind) => {
    const li = legendOf(text, colour(kind, -1, dark));
    li.hidden = !used.has(kind);
    return li;
  }));
}
