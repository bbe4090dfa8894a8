// Painting of everything with time as its x axis: time line, marks, heat map, and the strips of lanes.

const gutter = 196, margin = 14, laneHeight = 18;
const lineHeight = 44, gap = 5, markHeight = 9, axisHeight = 20;

// The palettes, from few to many.
const palettes = {
  light: ['#fdf1d6', '#fdd49e', '#fdae6b', '#f57a3d', '#d7301f', '#8e0c1c', '#4a0012'],
  dark: ['#33244f', '#5c2a72', '#952c80', '#d0416f', '#f7705c', '#fdb37a', '#fcf3b4'],
};
const greys = {light: ['#f1f1f1', '#d9d9d9', '#bdbdbd', '#9a9a9a'], dark: ['#272a30', '#33373e', '#434850', '#595f69']};
const markColours = {
  light: {gc: '#7b3fb5', safepoint: '#b58105', pause: '#c62828', other: '#00798c'},
  dark: {gc: '#bb8cf0', safepoint: '#e3b341', pause: '#ff7b72', other: '#4dc4d6'},
};
const selectionColours = {light: {A: '#1565c0', B: '#00796b'}, dark: {A: '#6cb6ff', B: '#4fd1b8'}};

const theme = dark => (dark ? 'dark' : 'light');
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const ramps = new Map();
// ramp returns a palette as 256 colours, packed as in ImageData on little-endian CPUs.
function ramp(stops) {
  const key = stops.join();
  let r = ramps.get(key);
  if (r) return r;
  r = new Uint32Array(256);
  const rgb = stops.map(s => [1, 3, 5].map(i => parseInt(s.slice(i, i + 2), 16)));
  for (let i = 0; i < 256; i++) {
    const x = (i / 255) * (rgb.length - 1), k = Math.min(Math.floor(x), rgb.length - 2), f = x - k;
    const [red, green, blue] = rgb[k].map((v, j) => Math.round(v + (rgb[k + 1][j] - v) * f));
    r[i] = (255 << 24) | (blue << 16) | (green << 8) | red;
  }
  ramps.set(key, r);
  return r;
}

const shadeOf = (value, scale) => Math.min(Math.floor(Math.pow(value / scale, 0.7) * 255), 255);

// charted is sized with the font of charts.
const charted = (canvas, width, height) => sized(canvas, width, height, '12px system-ui, sans-serif');

// The map's measures for a window.
function mapPlan(width, windowHeight) {
  const heat = windowHeight >= 1000 ? 250 : windowHeight >= 760 ? 150 : 100;
  const marks = lineHeight + gap, top = marks + (page.marks.length ? markHeight + gap : 0);
  return {width, plot: Math.max(width - gutter - margin, 50), line: 4, marks, top, heat, height: top + heat + axisHeight};
}

const xOf = (plan, seconds) => gutter + (seconds / (page.columns * page.rows * page.cell)) * plan.plot;
const columnAt = (plan, x) => Math.max(0, Math.min(page.columns - 1, Math.floor(((x - gutter) / plan.plot) * page.columns)));
// rowAtY: a column's first cell is its lowest.
const rowAtY = (plan, y) => Math.max(0, Math.min(page.rows - 1, page.rows - 1 - Math.floor(((y - plan.top) / plan.heat) * page.rows)));

const bitmap = document.createElement('canvas');

// paintMap draws everything above the lanes. data: {all, hit: sums by cell (hit may be null), scale, selections,
// cursor, dark}.
function paintMap(canvas, plan, data) {
  const g = charted(canvas, plan.width, plan.height), t = theme(data.dark);
  const soft = css('--soft'), rule = css('--line');
  paintLine(g, plan, data, t);
  if (page.marks.length) paintMarks(g, plan, t, soft);
  paintCells(g, plan, data, t);
  g.fillStyle = soft;
  g.textAlign = 'right';
  g.fillText(data.unit, gutter - 8, plan.line + 12);
  g.fillText(`most ${data.most}`, gutter - 8, plan.line + 28);
  g.fillText(told(page.rows * page.cell), gutter - 8, plan.top + 7);
  g.fillText('0', gutter - 8, plan.top + plan.heat - 6);
  if (plan.heat >= 100 && page.rows > 1) g.fillText('within a column', gutter - 8, plan.top + plan.heat / 2);
  g.strokeStyle = rule;
  g.lineWidth = 1;
  g.strokeRect(gutter - 0.5, plan.top - 0.5, plan.plot + 1, plan.heat + 1);
  paintAxis(g, plan, soft, rule);
  for (const s of data.selections) paintSelection(g, plan, s, selectionColours[t][s.which]);
}

// paintLine draws a bar for each column.
function paintLine(g, plan, data, t) {
  const {columns, hitColumns, highest} = data, width = plan.plot / page.columns, bottom = lineHeight;
  const bars = (values, colour) => {
    g.fillStyle = colour;
    for (let c = 0; c < values.length; c++) {
      if (values[c] <= 0) continue;
      const h = Math.max((values[c] / highest) * (lineHeight - plan.line), 1);
      g.fillRect(gutter + c * width, bottom - h, width > 4 ? width - 1 : width, h);
    }
  };
  bars(columns, hitColumns ? greys[t][2] : t === 'dark' ? '#8d7fb8' : '#9a8fbf');
  if (hitColumns) bars(hitColumns, t === 'dark' ? '#f7705c' : '#d7301f');
  g.fillStyle = css('--line');
  g.fillRect(gutter, bottom, plan.plot, 1);
}

const markColour = (t, kind) => (Object.hasOwn(markColours[t], kind) ? markColours[t][kind] : markColours[t].other);

function paintMarks(g, plan, t, soft) {
  for (const m of page.marks) {
    const x = xOf(plan, m.at);
    g.fillStyle = markColour(t, m.kind);
    g.fillRect(x, plan.marks, Math.max(xOf(plan, m.at + m.for) - x, 1.5), markHeight);
  }
  let right = gutter - 8;
  g.textAlign = 'right';
  g.font = '11px system-ui, sans-serif';
  for (const kind of [...new Set(page.marks.map(m => m.kind))].slice(0, 3).reverse()) {
    const text = cutTo(g, kind, 70);
    if (right - g.measureText(text).width < 20) break;
    g.fillStyle = soft;
    g.fillText(text, right, plan.marks + markHeight / 2);
    right -= g.measureText(text).width + 9;
    g.fillStyle = markColour(t, kind);
    g.fillRect(right, plan.marks + 1, 6, markHeight - 2);
    right -= 8;
  }
  g.font = '12px system-ui, sans-serif';
}

function paintCells(g, plan, data, t) {
  const {rows, columns} = page, image = new ImageData(columns, rows), pixels = new Uint32Array(image.data.buffer);
  const colours = ramp(palettes[t]), grey = ramp(greys[t]), shown = data.hit || data.all;
  for (let cell = 0, c = 0; c < columns; c++) {
    for (let r = rows - 1; r >= 0; r--, cell++) {
      if (shown[cell] > 0) pixels[r * columns + c] = colours[shadeOf(shown[cell], data.scale)];
      else if (data.all[cell] > 0) pixels[r * columns + c] = grey[shadeOf(data.all[cell], data.scale)];
    }
  }
  bitmap.width = columns;
  bitmap.height = rows;
  bitmap.getContext('2d').putImageData(image, 0, 0);
  g.imageSmoothingEnabled = plan.plot * (window.devicePixelRatio || 1) < columns;
  g.drawImage(bitmap, gutter, plan.top, plan.plot, plan.heat);
}

// told formats a length of time, or a time since the start: 12.34 s, 2:05, 1:02:05.
function told(seconds, digits = Number.isInteger(seconds) ? 0 : 2, inSeconds = seconds < 100) {
  const d = digits;
  const f = 10 ** d, all = Math.round(seconds * f) / f;
  if (inSeconds) return `${all.toFixed(d)} s`;
  const whole = Math.floor(all), h = Math.floor(whole / 3600), m = Math.floor((whole % 3600) / 60);
  const s = (all - h * 3600 - m * 60).toFixed(d).padStart(d ? 3 + d : 2, '0');
  return h ? `${h}:${String(m).padStart(2, '0')}:${s}` : `${m}:${s}`;
}

// moment formats a time since the start. All of them on a page have the same form.
const moment = (seconds, digits) => told(seconds, digits, page.columns * page.rows * page.cell <= 100);

const tickSteps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

function paintAxis(g, plan, soft, rule) {
  const all = page.columns * page.rows * page.cell;
  const step = tickSteps.find(s => (s / all) * plan.plot >= 78) || Math.ceil(all / 10 / 86400) * 86400;
  g.textAlign = 'center';
  const y = plan.top + plan.heat;
  for (let at = 0; at <= all; at += step) {
    const x = xOf(plan, at), text = moment(at, 0), half = g.measureText(text).width / 2;
    g.fillStyle = rule;
    g.fillRect(x, y + 1, 1, 4);
    g.fillStyle = soft;
    g.fillText(text, Math.min(x, plan.width - half - 5), y + 13);
  }
}

// outline returns the outline of the cells from..to, which fill columns from below.
function outline(g, plan, from, to) {
  const {rows} = page, w = plan.plot / page.columns, h = plan.heat / rows;
  const c1 = Math.floor(from / rows), r1 = from % rows, c2 = Math.floor((to - 1) / rows), r2 = ((to - 1) % rows) + 1;
  const x = c => gutter + c * w, y = r => plan.top + plan.heat - r * h, top = plan.top, bottom = plan.top + plan.heat;
  g.beginPath();
  if (c1 === c2) {
    g.rect(x(c1), y(r2), w, (r2 - r1) * h);
    return;
  }
  const points = [[x(c1), y(r1)], [x(c1), top]];
  points.push(...(r2 === rows ? [[x(c2 + 1), top], [x(c2 + 1), bottom]] : [[x(c2), top], [x(c2), y(r2)], [x(c2 + 1), y(r2)], [x(c2 + 1), bottom]]));
  points.push(...(r1 === 0 ? [[x(c1), bottom]] : [[x(c1 + 1), bottom], [x(c1 + 1), y(r1)]]));
  if (c2 === c1 + 1 && r1 >= r2 && r2 !== rows && r1 !== 0) { // two columns without a common row
    g.rect(x(c1), top, w, y(r1) - top);
    g.rect(x(c2), y(r2), w, bottom - y(r2));
    return;
  }
  points.forEach(([px, py], i) => (i ? g.lineTo(px, py) : g.moveTo(px, py)));
  g.closePath();
}

function paintSelection(g, plan, s, colour) {
  outline(g, plan, s.from, s.to);
  g.fillStyle = colour + '1c';
  g.fill();
  g.strokeStyle = colour;
  g.lineWidth = s.active ? 2 : 1.2;
  g.setLineDash(s.dashed ? [4, 3] : []);
  g.stroke();
  g.setLineDash([]);
  const x1 = gutter + (Math.floor(s.from / page.rows) * plan.plot) / page.columns;
  const x2 = gutter + (Math.ceil(s.to / page.rows) * plan.plot) / page.columns;
  g.fillStyle = colour;
  g.fillRect(x1, lineHeight, Math.max(x2 - x1, 2), 2);
  g.font = 'bold 11px system-ui, sans-serif';
  g.textAlign = 'center';
  const tag = Math.max(gutter + 7, Math.min((x1 + x2) / 2, plan.width - margin - 7));
  g.fillRect(tag - 7, 0, 14, 14);
  g.fillStyle = css('--paper');
  g.fillText(s.which, tag, 7.5);
  g.font = '12px system-ui, sans-serif';
}

// cutTo shortens a text to a width, but keeps its end: threads of a pool have their numbers there.
function cutTo(g, text, room) {
  if (g.measureText(text).width <= room) return text;
  const end = Math.min(12, Math.floor(text.length / 2)), tail = '\u2026' + text.slice(text.length - end);
  let low = 0, high = text.length - end;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (g.measureText(text.slice(0, mid) + tail).width <= room) low = mid;
    else high = mid - 1;
  }
  return text.slice(0, low) + tail;
}

const short = (n, of) => (of ? (100 * n) / of : 0).toFixed(n > 0 && n < of ? 1 : 0) + '%';

// paintLanes draws the strips: one for all threads, and one for each lane. data: {sums, hitSums, totals, whole, lane,
// selections, hovered, dark}.
function paintLanes(canvas, plan, data) {
  const {columns} = page, rows = laneCount + 1, t = theme(data.dark), g = charted(canvas, plan.width, rows * laneHeight);
  const ink = css('--ink'), soft = css('--soft'), colours = ramp(palettes[t]), grey = ramp(greys[t]);
  const image = new ImageData(columns, rows), pixels = new Uint32Array(image.data.buffer);
  const fill = (row, at, all, hit, scale) => {
    for (let c = 0; c < columns; c++) {
      const shown = hit ? hit[at + c] : all[at + c];
      if (shown > 0) pixels[row * columns + c] = colours[shadeOf(shown, scale)];
      else if (all[at + c] > 0) pixels[row * columns + c] = grey[shadeOf(all[at + c], scale)];
    }
  };
  fill(0, 0, data.whole, data.hitWhole, data.wholeScale);
  for (let lane = 0; lane < laneCount; lane++) fill(lane + 1, lane * columns, data.sums, data.hitSums, data.scale);
  bitmap.width = columns;
  bitmap.height = rows;
  bitmap.getContext('2d').putImageData(image, 0, 0);
  g.imageSmoothingEnabled = plan.plot * (window.devicePixelRatio || 1) < columns;
  for (let row = 0; row < rows; row++) {
    const y = row * laneHeight, chosen = data.lane === row - 1;
    if (chosen || data.hovered === row - 1) {
      g.fillStyle = chosen ? css('--chosen') : css('--bar');
      g.fillRect(4, y, gutter - 8, laneHeight - 1);
    }
    g.drawImage(bitmap, 0, row, columns, 1, gutter, y + 1, plan.plot, laneHeight - 3);
    const share = short(row ? data.totals[row - 1] : data.total, data.total);
    g.textAlign = 'right';
    g.fillStyle = soft;
    g.fillText(share, gutter - 10, y + laneHeight / 2);
    g.textAlign = 'left';
    g.fillStyle = ink;
    g.font = chosen ? 'bold 12px system-ui, sans-serif' : '12px system-ui, sans-serif';
    g.fillText(cutTo(g, row ? page.lanes[row - 1] : 'all threads', gutter - 26 - g.measureText('100%').width), 10, y + laneHeight / 2);
    g.font = '12px system-ui, sans-serif';
  }
  for (const s of data.selections) {
    const x1 = gutter + (s.from / cells) * plan.plot, x2 = gutter + (s.to / cells) * plan.plot;
    const top = s.lane < 0 ? 0 : (s.lane + 1) * laneHeight, h = s.lane < 0 ? rows * laneHeight : laneHeight;
    g.strokeStyle = selectionColours[t][s.which];
    g.lineWidth = s.active ? 2 : 1.2;
    g.strokeRect(x1, top + 1, Math.max(x2 - x1, 2), h - 3);
  }
}
