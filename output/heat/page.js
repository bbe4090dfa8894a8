// The page: dragging, keys and pointing, and the texts about the selection. Names come from the target, and are only
// set as text.

const $ = id => document.getElementById(id);

const state = {
  selections: {A: null, B: null}, // {from, to: cells, lane}
  active: 'A', show: 'A', // 'A', 'B' or 'diff'
  lane: -1, states: null, on: null, highlight: null, // {hit: by name, mask: by node, text}
  dark: false, anchor: null, hoveredLane: null, query: '',
  sums: null, map: null, lanes: null, plan: null,
};

const whole = {from: 0, to: cells, lane: -1};
const ofWhat = page.unit === 'cpu' ? 'of CPU' : "of threads' time";
const figure = n => (timed ? duration(n) : page.unit === 'bytes' ? bytes(n) : thousands(Math.round(n * 100) / 100));
const amount = n => (timed ? `${duration(n)} ${ofWhat}` : page.unit === 'bytes' ? `${bytes(n)} allocated` : `${figure(n)} ${n === 1 ? 'sample' : 'samples'}`);
const unitName = {time: "threads' time", cpu: 'CPU time', bytes: 'allocated'}[page.unit] || 'samples';
const columnSeconds = page.rows * page.cell;
const digits = page.cell >= 1 ? 0 : page.cell >= 0.1 ? 1 : page.cell >= 0.01 ? 2 : 3;
const second = cell => moment(cell * page.cell, digits);
const laneName = lane => (lane < 0 ? 'all threads' : page.lanes[lane]);

// clock formats a time of day, as in logs.
function clock(cell, withDate) {
  const at = new Date(page.start + cell * page.cell * 1000);
  if (isNaN(at)) return '';
  const two = n => String(n).padStart(2, '0');
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`;
  const zone = -at.getTimezoneOffset(), sign = zone < 0 ? '\u2212' : '+';
  const utc = zone === 0 ? 'UTC' : `UTC${sign}${two(Math.floor(Math.abs(zone) / 60))}:${two(Math.abs(zone) % 60)}`;
  return `${withDate ? `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` : ''}${time} ${utc}`;
}

// Computing, from the samples on.

const filter = (lane, mask) => ({lane, on: state.on, mask});
const mask = () => state.highlight && state.highlight.mask;
const sumOf = values => values.reduce((a, b) => a + b, 0);

// compute sums up the figures of the map and the lanes.
function compute() {
  const hit = mask(), all = byCell(filter(state.lane, null)), hits = hit ? byCell(filter(state.lane, hit)) : null;
  const columns = byColumn(all), hitColumns = hits && byColumn(hits);
  state.map = {all, hit: hits, columns, hitColumns, scale: scaleOf(all), highest: columns.reduce((a, b) => Math.max(a, b), 0) || 1,
    total: sumOf(columns), hitTotal: hits ? sumOf(hitColumns) : 0};
  if (page.unit === 'samples' && !page.spans) state.map.scale = Math.max(state.map.scale, 4); // few samples stay pale
  const sums = byLane(filter(-1, null)), hitSums = hit ? byLane(filter(-1, hit)) : null;
  const totals = page.lanes.map((_, l) => sumOf(sums.subarray(l * page.columns, (l + 1) * page.columns)));
  const over = values => page.lanes.reduce((out, _, l) => {
    for (let c = 0; c < page.columns; c++) out[c] += values[l * page.columns + c];
    return out;
  }, new Float64Array(page.columns));
  const of = over(sums);
  state.lanes = {sums, hitSums, totals, total: sumOf(totals), whole: of, hitWhole: hitSums && over(hitSums), scale: scaleOf(sums), wholeScale: scaleOf(of)};
}

// computeGraph sums up the stacks of the selection.
function computeGraph() {
  const {A, B} = state.selections, of = s => s || {...whole, lane: state.lane};
  const sum = (t, s) => sumStacks(t, s.from, s.to, filter(s.lane, null));
  if (state.show !== 'B') sum(graph.trees.A, of(A));
  if (state.show !== 'A') sum(graph.trees.B, of(B));
  graph.shown = state.show === 'A' ? graph.trees.A : graph.trees.B;
  graph.before = state.show === 'diff' ? graph.trees.A : null;
}

// Drawing.

function selectionsShown() {
  return ['A', 'B'].filter(w => state.selections[w]).map(which => ({...state.selections[which], which, active: which === state.active,
    dashed: state.selections[which].lane !== state.lane}));
}

function drawMap() {
  const width = $('times').clientWidth;
  state.plan = mapPlan(width, innerHeight);
  const per = columnSeconds === 1 ? 'a second' : `in ${told(columnSeconds)}`;
  paintMap($('map'), state.plan, {...state.map, dark: state.dark, selections: selectionsShown(),
    unit: `${unitName} ${per}`, most: figure(state.map.highest)});
  if (laneCount > 1) {
    paintLanes($('strips'), state.plan, {...state.lanes, lane: state.lane, hovered: state.hoveredLane, dark: state.dark, selections: selectionsShown()});
  }
}

function drawGraph() {
  computeGraph();
  layoutGraph();
  paintGraph();
  details();
}

function drawAll() {
  const began = performance.now();
  drawMap();
  drawGraph();
  tell();
  $('summary').dataset.ms = (performance.now() - began).toFixed(1);
}

const soon = (() => { // each at most once for each frame of the screen
  const pending = new Set();
  return draw => {
    if (!pending.size) requestAnimationFrame(() => {
      const all = [...pending];
      pending.clear();
      for (const d of all) d();
    });
    pending.add(draw);
  };
})();

const describe = s => `${second(s.from)} \u2013 ${second(s.to)}${s.lane < 0 ? '' : `, ${laneName(s.lane)}`}`;
const isWhole = s => s.from === 0 && s.to === cells;

// tell updates the buttons, and the text for tests and screen readers.
function tell() {
  const {selections, show, active, highlight, map} = state;
  const totals = {A: graph.trees.A.total[0], B: graph.trees.B.total[0]};
  for (const w of ['A', 'B']) {
    const s = selections[w], used = show === w || show === 'diff';
    const text = s ? (isWhole(s) ? `all the time${s.lane < 0 ? '' : `, ${laneName(s.lane)}`}` : describe(s)) :
      w === 'A' ? `all the time${state.lane < 0 ? '' : `, ${laneName(state.lane)}`}` : 'Shift+drag to compare';
    $('set' + w).textContent = `${w}  ${text}${used ? ` \u00b7 ${figure(totals[w])}` : ''}`;
    $('set' + w).setAttribute('aria-pressed', active === w);
    $('set' + w).classList.toggle('none', !s);
  }
  for (const [id, on] of [['showA', show === 'A'], ['showB', show === 'B'], ['showDiff', show === 'diff'], ['dark', state.dark], ['frames', tree === trees.whole]]) $(id).setAttribute('aria-pressed', on);
  for (const id of ['showB', 'showDiff', 'swap']) $(id).disabled = !selections.B;
  $('matched').textContent = !state.query ? '' : !highlight ? 'not an expression' : !highlight.names ? 'no match' : `matched ${percent(map.hitTotal, map.total)}`;
  const plain = n => String(Math.round(n * 1e3) / 1e3), of = s => (s ? `${s.from}..${s.to} ${laneName(s.lane)}` : 'none');
  $('summary').textContent = [
    `${timed ? 'ns' : page.unit} ${plain(map.total)}`, `columns ${page.columns} of ${columnSeconds} s, ${page.rows} cells each`, `lanes ${laneCount} by ${page.laneOf}`,
    `lane ${laneName(state.lane)}`, `A ${of(selections.A)}`, `B ${of(selections.B)}`, `active ${active}`,
    `flame ${show} ${plain(graph.shown.total[0])}${graph.before ? ` before ${plain(graph.before.total[0])}` : ''}`,
    `zoom ${nameOf(graph.view.name(graph.zoom))}`,
    `highlight ${highlight ? `${highlight.text} ${plain(map.hitTotal)}` : 'none'}`,
    `states ${state.states.names.filter((_, i) => state.states.chosen[i]).join(',') || 'none'}`,
    `drawn ${graph.plan.boxes} boxes${tree === trees.whole ? ', all frames' : ''}`, state.dark ? 'dark' : 'light',
  ].join('; ');
  drawKey();
}

// drawKey explains the colours. The colours of a difference are not those of kinds.
function drawKey() {
  const scale = (colours, from, to) => {
    const part = document.createElement('span'), c = document.createElement('canvas');
    const g = charted(c, 90, 10), step = g.createLinearGradient(0, 0, 90, 0);
    colours.forEach((v, i) => step.addColorStop(i / (colours.length - 1), v));
    g.fillStyle = step;
    g.fillRect(0, 0, 90, 10);
    part.append(from, c, to);
    return part;
  };
  const cell = page.cell < 1 ? `${Number((page.cell * 1000).toPrecision(6))} ms` : told(page.cell);
  const parts = [scale(palettes[theme(state.dark)], '0', `${figure(state.map.scale)} in ${cell}`)];
  if (graph.before) parts.unshift(scale(changeScale(state.dark), 'less in B', 'more in B'));
  $('key').replaceChildren(...parts);
  $('legend').classList.toggle('unseen', Boolean(graph.before));
}

// Choosing.

function select(which, s) {
  state.selections[which] = s;
  if (which === 'B' || state.selections.B) state.show = s || which === 'A' ? (state.selections.B ? 'diff' : 'A') : 'A';
  else state.show = 'A';
  state.active = which;
}

function setLane(lane) {
  if (lane === state.lane) return;
  state.lane = lane;
  compute();
}

// chooseLane shows a lane. The selected times stay selected in it. If there are none, the whole lane is selected.
function chooseLane(lane) {
  setLane(lane);
  const s = state.selections[state.active];
  select(state.active, lane < 0 && (!s || isWhole(s)) ? null : {...(s || whole), lane});
  drawAll();
}

function setHighlight(text, hit, count, quiet) {
  state.highlight = hit && {text, hit, quiet, names: count, mask: containing(tree, hit)};
  compute();
  drawAll();
}

// highlightName shows when a frame was seen. The flame graph does not change, but the frame is selected in it.
function highlightName(id) {
  const hit = new Uint8Array(names.length + 1);
  let count = 0;
  names.forEach((n, i) => {
    if (n === names[id]) count += hit[i] = 1;
  });
  setHighlight(names[id], hit, count, true);
}

function find(query) {
  state.query = query;
  let pattern = null;
  try {
    // A pattern with capital letters is case-sensitive.
    pattern = query === '' ? null : new RegExp(query, /[A-Z]/.test(query.replace(/\\./g, '')) ? '' : 'i');
  } catch { /* the field says so */ }
  $('query').classList.toggle('bad', query !== '' && !pattern);
  if (!pattern) return setHighlight('', null, 0);
  const hit = new Uint8Array(names.length + 1);
  let count = 0;
  for (let i = 0; i < names.length; i++) if (pattern.test(names[i])) count += hit[i] = 1;
  setHighlight(query, hit, count);
}

function clearSearch() {
  $('query').value = '';
  state.query = '';
  $('query').classList.remove('bad');
}

function setDark(on) {
  state.dark = on;
  document.documentElement.classList.toggle('dark', on);
  drawLegend($('legend'), on);
  if (guesses) $('legend').append(legendOfGuess());
}

const show = what => {
  if (what !== 'A' && !state.selections.B) return;
  state.show = what;
  drawAll();
};

function swap() {
  const {A, B} = state.selections;
  if (!B) return;
  state.selections = {A: B, B: A || {...whole, lane: state.lane}};
  drawAll();
}

// escape undoes one thing: the search, the highlight, the zoom, B, A, the lane.
function escape() {
  const {A, B} = state.selections;
  if (state.query || state.highlight) {
    clearSearch();
    $('query').blur();
    setHighlight('', null, 0);
    if (graph.zoom) zoomTo(0, false);
    graph.trail = [];
    return;
  }
  if (graph.zoom) {
    graph.trail = [];
    return zoomTo(0, false);
  }
  if (B) select('B', null);
  else if (A) select('A', null);
  else setLane(-1);
  state.active = 'A';
  drawAll();
}

function reset() {
  clearSearch();
  Object.assign(state, {selections: {A: null, B: null}, active: 'A', show: 'A', lane: -1, highlight: null, anchor: null});
  Object.assign(graph, {zoom: 0, trail: [], selected: null, hovered: null});
  compute();
  drawAll();
}

// States.

// restful are states in which threads mostly have nothing to do. Thousands of them would hide the threads with work.
const restful = new Set(['parked', 'sleeping', 'waiting', 'socket', 'in VM', 'in native', 'stopped']);

function beginStates() {
  state.states = statesOf(tree);
  const {names: all, used} = state.states;
  let chosen = all.map((s, i) => used[i] && !restful.has(s));
  if (!chosen.includes(true)) chosen = used.slice();
  state.states.chosen = chosen;
  if (used.filter(Boolean).length > 1) showStates();
  applyStates();
}

function showStates() {
  const {names: all, used} = state.states, button = (text, press) => {
    const b = document.createElement('button');
    b.textContent = text;
    b.onclick = () => {
      press();
      chooseStates();
    };
    return b;
  };
  const label = document.createElement('span');
  label.className = 'soft';
  label.textContent = 'threads that are';
  state.states.buttons = all.map((name, i) => {
    const b = button(name, () => {
      state.states.chosen[i] = !state.states.chosen[i];
    });
    b.hidden = !used[i];
    return b;
  });
  state.states.every = button('all states', () => {
    const some = used.some((u, i) => u && !state.states.chosen[i]);
    state.states.chosen = all.map((s, i) => used[i] && (some || !restful.has(s)));
  });
  $('states').replaceChildren(label, ...state.states.buttons, state.states.every);
  $('states').hidden = false;
}

function applyStates() {
  const {of, chosen, buttons, every, used} = state.states;
  state.on = of.map(s => (s < 0 || chosen[s] ? 1 : 0));
  if (!buttons) return;
  buttons.forEach((b, i) => b.setAttribute('aria-pressed', chosen[i]));
  every.setAttribute('aria-pressed', used.every((u, i) => !u || chosen[i]));
}

function chooseStates() {
  applyStates();
  compute();
  drawAll();
}

// Pointing at times.

// cellsAt returns the cells under the pointer: one cell in the heat map, otherwise a column's.
function cellsAt(event) {
  const r = $('map').getBoundingClientRect(), {plan} = state, y = event.clientY - r.top, first = columnAt(plan, event.clientX - r.left) * page.rows;
  if (y < plan.top || y >= plan.top + plan.heat) return {from: first, to: first + page.rows};
  const cell = first + rowAtY(plan, y);
  return {from: cell, to: cell + 1};
}

const around = (a, b) => ({from: Math.min(a.from, b.from), to: Math.max(a.to, b.to)});

// drag makes a canvas select time. at returns the cells of an event, and lane returns its lane.
function drag(canvas, at, lane) {
  canvas.onpointerdown = event => {
    if (event.button !== 0 || event.clientX - canvas.getBoundingClientRect().left < gutter) return;
    canvas.setPointerCapture(event.pointerId);
    if (event.shiftKey) state.active = 'B';
    const begin = at(event), of = lane(event);
    if (of !== undefined) setLane(of);
    const move = e => {
      select(state.active, {...around(begin, at(e)), lane: state.lane});
      state.anchor = begin;
      soon(drawAll);
    };
    move(event);
    canvas.onpointermove = e => {
      move(e);
      hoverTimes(e);
    };
    canvas.onpointerup = canvas.onpointercancel = () => {
      canvas.onpointermove = canvas.onpointerup = canvas.onpointercancel = null;
      if (event.shiftKey) state.active = 'A'; // Shift counts for one drag only
      drawAll();
    };
  };
}

function laneAt(event) {
  const lane = Math.floor((event.clientY - $('strips').getBoundingClientRect().top) / laneHeight) - 1;
  return Math.max(-1, Math.min(laneCount - 1, lane));
}

function placeTip(event, lines) {
  const tip = $('tip');
  tip.hidden = false;
  tip.textContent = lines.filter(Boolean).join('\n');
  tip.style.left = Math.max(0, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = (event.clientY + 24 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 8 : event.clientY + 18) + 'px';
}

const hideTip = () => {
  $('tip').hidden = true;
};

function marksAt(x) {
  const {plan} = state, near = page.marks.filter(m => x >= xOf(plan, m.at) - 3 && x <= xOf(plan, m.at + m.for) + 3);
  const lines = near.slice(0, 6).map(m => `${m.kind}: ${m.text}${m.for ? `, ${duration(m.for * 1e9)}` : ''} at ${moment(m.at, 3)}`);
  return near.length > 6 ? [...lines, `and ${near.length - 6} more`] : lines;
}

function hoverTimes(event) {
  const r = $('map').getBoundingClientRect(), x = event.clientX - r.left, y = event.clientY - r.top, {plan, map} = state;
  $('map').style.cursor = x < gutter ? '' : 'crosshair';
  if (x < gutter || x > gutter + plan.plot) return hideTip();
  const {from, to} = cellsAt(event), sum = values => sumOf(values.subarray(from, to));
  const lines = [`${second(from)} \u2013 ${second(to)} \u00b7 ${clock(from)}`, amount(sum(map.all)) + (state.lane < 0 ? '' : ` in ${laneName(state.lane)}`)];
  if (map.hit) lines.push(`${amount(sum(map.hit))} with ${state.highlight.text}`);
  placeTip(event, [...lines, ...(y < plan.top && y >= plan.marks - gap ? marksAt(x) : [])]);
}

function hoverLanes(event) {
  const x = event.clientX - $('strips').getBoundingClientRect().left, lane = laneAt(event), {lanes, plan} = state;
  if (lane !== state.hoveredLane) {
    state.hoveredLane = lane;
    soon(drawMap);
  }
  $('strips').style.cursor = x < gutter ? 'pointer' : 'crosshair';
  if (x < gutter) {
    const total = lane < 0 ? lanes.total : lanes.totals[lane];
    return placeTip(event, [laneName(lane), `${amount(total)}, ${percent(total, lanes.total)}`]);
  }
  const column = columnAt(plan, x), value = values => (lane < 0 ? values.whole[column] : values.sums[lane * page.columns + column]);
  placeTip(event, [laneName(lane), `${second(column * page.rows)} \u2013 ${second((column + 1) * page.rows)} \u00b7 ${clock(column * page.rows)}`, amount(value(lanes))]);
}

// Moving through time by keys.

// step moves the selection by columns or cells, or extends it.
function step(columns, rows, extend) {
  const now = state.selections[state.active];
  let s;
  if (!now || isWhole(now)) {
    s = {from: 0, to: page.rows};
    if (extend || rows) state.anchor = null;
  } else if (extend) {
    const by = columns * page.rows + rows;
    if (!state.anchor || state.anchor.from < now.from || state.anchor.to > now.to) state.anchor = {from: now.from, to: Math.min(now.to, now.from + (rows ? 1 : page.rows))};
    const back = now.to === state.anchor.to && (now.from < state.anchor.from || by < 0);
    s = back ? {from: now.from + by, to: now.to} : {from: now.from, to: now.to + by};
    if (s.to < state.anchor.to) s = {from: s.to - (state.anchor.to - state.anchor.from), to: state.anchor.to};
    if (s.from > state.anchor.from) s = {from: state.anchor.from, to: state.anchor.to};
  } else if (rows) {
    const cell = now.to - now.from === 1 ? now.from + rows : rows > 0 ? now.from : now.to - 1;
    s = {from: cell, to: cell + 1};
  } else {
    const column = Math.floor((columns < 0 ? now.from : now.to - 1) / page.rows), whole = now.from % page.rows === 0 && now.to % page.rows === 0;
    const first = (whole || Math.abs(columns) > 1 ? column + columns : column) * page.rows;
    s = {from: first, to: first + page.rows};
  }
  const wide = Math.max(1, Math.min(s.to - s.from, cells));
  if (!extend && s.from + wide > cells) s.from = cells - wide;
  s.from = Math.max(0, s.from);
  s.to = Math.min(cells, extend ? s.to : s.from + wide);
  if (s.to <= s.from) return;
  if (!extend) state.anchor = s;
  select(state.active, {...s, lane: state.lane});
  drawAll();
}

function selectAll() {
  select(state.active, {...whole, lane: state.lane});
  drawAll();
}

function stepLane(by) {
  if (laneCount < 2) return;
  chooseLane(Math.max(-1, Math.min(laneCount - 1, state.lane + by)));
  const box = $('lanes'), y = (state.lane + 1) * laneHeight;
  if (y < box.scrollTop || y + laneHeight > box.scrollTop + box.clientHeight) box.scrollTop = y - laneHeight;
}

const activate = which => {
  state.active = which;
  drawAll();
};

const keyHelp = [
  ['drag', 'select time in the heat map, the time line or a lane; a click selects one cell, one column, a lane'], ['Shift+drag', 'select B: the flame graph compares B with A'],
  ['\u2190 \u2192', 'the column before or behind'], ['\u2191 \u2193', 'the cell behind or before, within a column'], ['Shift+arrows', 'more or less of the time'],
  ['PageUp, PageDown', 'ten columns back or on'], ['Home, End', 'the first column, the last'], ['w', 'the whole time'], ['[ ]', 'the lane above or below'], ['a, b', 'choose whether A or B is selected'],
  ['1, 2, 3', 'flame graph of A, of B, of the difference'], ['s', 'swap A and B'], ['Tab', 'from the heat map to the flame graph and on'],
  ['in the flame graph', 'a: all frames, or without those by which threads begin or in which they just wait; arrows go from frame to frame; Enter or a click zooms, and shows when that frame was seen; Backspace goes back; 0 shows all'],
  ['/', 'search: shows when matching frames were seen'], ['Esc', 'take back: search, zoom, B, A, lane'], ['d', 'dark or light'], ['c', "copy the frame's name"], ['?', 'about'],
];

function enter() {
  const node = graph.selected ?? graph.zoom;
  choose(node);
}

// choose zooms to a frame and shows when it was seen.
function choose(node) {
  const id = graph.view.name(node);
  graph.selected = node;
  if (id < 0) {
    clearSearch();
    setHighlight('', null, 0);
    return zoomTo(0);
  }
  clearSearch();
  zoomTo(node);
  highlightName(id);
}

function back() {
  if (graph.trail.length) zoomTo(graph.trail.pop(), false);
}

async function copy() {
  const id = graph.view.name(graph.hovered ?? graph.selected ?? graph.zoom);
  if (id < 0) return;
  $('figures').textContent = (await copyText(names[id])) ? 'copied' : 'could not copy';
}

const mapKeys = {
  ArrowLeft: e => step(-1, 0, e.shiftKey), ArrowRight: e => step(1, 0, e.shiftKey),
  ArrowUp: e => step(0, 1, e.shiftKey), ArrowDown: e => step(0, -1, e.shiftKey),
  PageUp: e => step(-10, 0, e.shiftKey), PageDown: e => step(10, 0, e.shiftKey),
  Home: e => step(-page.columns, 0, e.shiftKey), End: e => step(page.columns, 0, e.shiftKey),
};

// toggleFrames shows the stacks with all frames, or only with the informative ones.
function toggleFrames() {
  if (!trees.whole) return;
  const all = tree === trees.drawn;
  tree = all ? trees.whole : trees.drawn;
  entry.node = all ? nodesOf.whole : nodesOf.drawn;
  Object.assign(graph, {trees: {A: sameShape(tree), B: sameShape(tree)}, zoom: 0, trail: [], selected: null, hovered: null});
  const {names: words, of} = statesOf(tree);
  state.states.of = of.map(k => (k < 0 ? k : state.states.names.indexOf(words[k])));
  applyStates();
  if (state.highlight) state.highlight.mask = containing(tree, state.highlight.hit);
  compute();
  drawAll();
}

const graphKeys = {
  a: toggleFrames,
  ArrowUp: () => stepFrame('caller'), ArrowDown: () => stepFrame('callee'), ArrowLeft: () => stepFrame('left'), ArrowRight: () => stepFrame('right'),
  Enter: enter, Backspace: back, 0: () => {
    graph.trail = [];
    zoomTo(0, false);
  },
};

const keys = {
  '/': () => $('query').select(),
  Escape: escape, w: selectAll, a: () => activate('A'), b: () => activate('B'), '[': () => stepLane(-1), ']': () => stepLane(1),
  1: () => show('A'), 2: () => show('B'), 3: () => show('diff'), s: swap, c: copy,
  d: () => {
    setDark(!state.dark);
    drawAll();
  },
  '?': () => {
    $('about').showModal();
    $('about').querySelector('h2').focus(); // not the button, because its focus ring would be too prominent
  },
};

// Buttons and dialogs.

function hoverGraph(event) {
  const node = nodeAt(event);
  if (node !== graph.hovered) {
    graph.hovered = node;
    $('canvas').style.cursor = node === null ? '' : 'pointer';
    soon(paintGraph);
    details();
  }
  if (node === null) return hideTip();
  const id = graph.view.name(node);
  placeTip(event, [nameOf(id), (id < 0 ? '' : kinds[kindOf(id)][0] + '; ' + guessText(graph.view, node)) + graphFigures(node)]);
}

function listen() {
  $('dark').onclick = keys.d;
  $('clear').onclick = reset;
  $('aboutButton').onclick = keys['?'];
  $('copy').onclick = copy;
  $('swap').onclick = swap;
  for (const w of ['A', 'B']) {
    $('set' + w).onclick = () => activate(w);
    $('show' + w).onclick = () => show(w);
  }
  $('showDiff').onclick = () => show('diff');
  $('frames').onclick = toggleFrames;
  let timer;
  $('query').oninput = () => {
    clearTimeout(timer);
    timer = setTimeout(() => find($('query').value), entry.count > 200000 ? 150 : 0);
  };
  $('find').onsubmit = event => {
    event.preventDefault();
    clearTimeout(timer);
    find($('query').value);
    $('times').focus();
  };
  drag($('map'), cellsAt, () => undefined);
  drag($('strips'), event => {
    const first = columnAt(state.plan, event.clientX - $('strips').getBoundingClientRect().left) * page.rows;
    return {from: first, to: first + page.rows};
  }, laneAt);
  $('strips').onclick = event => {
    if (event.clientX - $('strips').getBoundingClientRect().left < gutter) chooseLane(laneAt(event));
  };
  $('map').onmousemove = hoverTimes;
  $('strips').onmousemove = hoverLanes;
  $('map').onmouseleave = hideTip;
  $('strips').onmouseleave = () => {
    state.hoveredLane = null;
    hideTip();
    soon(drawMap);
  };
  $('canvas').onmousemove = hoverGraph;
  $('canvas').onmouseleave = () => {
    graph.hovered = null;
    hideTip();
    soon(paintGraph);
    details();
  };
  $('canvas').onclick = event => {
    const node = nodeAt(event);
    if (node !== null) choose(node);
  };
  $('scroll').onscroll = () => soon(paintGraph);
  listenKeys(keys, event => (event.target === $('scroll') ? graphKeys : mapKeys));
  new ResizeObserver(() => soon(drawAll)).observe(document.body);
}

async function begin() {
  for (const fact of page.about) row($('facts'), fact);
  row($('facts'), ['begins', clock(0, true)]);
  for (const key of keyHelp) row($('keys'), key);
  setDark(matchMedia('(prefers-color-scheme: dark)').matches);
  await load();
  performance.mark('goprof-loaded');
  graph.trees = {A: sameShape(tree), B: sameShape(tree)};
  $('lanes').hidden = laneCount < 2;
  $('frames').hidden = !trees.whole;
  if (guesses) $('legend').append(legendOfGuess());
  beginStates();
  compute();
  drawAll();
  listen();
  $('times').focus();
  performance.mark('goprof-drawn');
  performance.measure('goprof-load', 'goprof-begin', 'goprof-loaded');
  performance.measure('goprof-draw', 'goprof-begin', 'goprof-drawn');
}

begin().catch(error => {
  $('line').textContent = `This browser cannot draw the page: ${error.message}. It needs one of 2023 or later (DecompressionStream).`;
  throw error;
});
