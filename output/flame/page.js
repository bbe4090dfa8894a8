// The page: keys, typing and pointing, and the texts about frames. Names come from the target, and are only set as
// text.

const $ = id => document.getElementById(id);
const scroll = $('scroll'), canvas = $('canvas');

const state = {
  view: forward, zoom: forward.root, trail: [], plan: null,
  icicle: false, folded: false, dark: false, query: '', found: null, matched: 0,
  hovered: null, selected: null, took: 0, frames: false,
};

let whole = tree.total[0];
(page.words || []).forEach((text, kind) => { if (text) kinds[kind][0] = text; });
const timed = page.unit === 'cpu' || page.unit === 'time';
const inBytes = page.unit === 'bytes';
const figure = n => timed ? duration(n) : inBytes ? bytes(n) : thousands(n);
const ofWhat = page.unit === 'cpu' ? 'of CPU' : "of threads' time";
const samples = (n, text) => `${text} ${n === 1 ? 'sample' : 'samples'}`;
const counted = (n, text) => timed ? `${duration(n)} ${ofWhat}` : inBytes ? `${bytes(n)}${page.words ? '' : ' allocated'}` : samples(n, text);
const amount = n => counted(n, thousands(n));
const plainAmount = n => counted(n, n);

// relayout computes the rows again. redraw paints the present rows.
function relayout(keepScroll) {
  const began = performance.now();
  const width = scroll.clientWidth;
  state.plan = layout(state.view, state.zoom, width);
  const height = state.plan.rows.length * rowHeight;
  $('space').style.height = Math.max(height, scroll.clientHeight) + 'px';
  if (!keepScroll) scrollToTime();
  redraw();
  tellCalls();
  state.took = performance.now() - began;
  tell();
}

// offset is where the graph begins vertically: flames are at the bottom.
const offset = () => (state.icicle ? 0 : Math.max(scroll.clientHeight - state.plan.rows.length * rowHeight, 0));

function scrollToRow(depth) {
  const i = rowAt(state.plan, depth, state.icicle);
  scroll.scrollTop = state.icicle ? i * rowHeight : (i + 1) * rowHeight - scroll.clientHeight;
}

// scrollToTime shows the zoom, or the frames with most of its time if these are far from it, after a deep recursion.
function scrollToTime() {
  const first = Math.max(state.plan.zoomDepth - 2, 0), rows = Math.floor(scroll.clientHeight / rowHeight);
  const hot = state.view.depth(hottest(state.view, state.zoom));
  scrollToRow(hot - first < rows ? first : hot - Math.floor(rows / 2));
}

function redraw() {
  paint(canvas, state.plan, state.view, scroll.scrollTop - offset(), scroll.clientWidth, scroll.clientHeight, {
    icicle: state.icicle, dark: state.dark, hit: state.found && state.found.hit, selected: state.selected, hovered: state.hovered,
    colour: diff ? n => changeColour(state.view, n, state.dark) : null, hatch: guesses ? hatchOf(state.dark) : null,
  });
}

// guesses: some leaves are guesses.
const guesses = page.guessed && page.guessed.length > 0;

let waiting = false;
function redrawSoon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    redraw();
  });
}

// tell updates the address, and the text for tests and screen readers.
function tell() {
  const s = state, parts = [
    timed ? `${page.unit} ${whole} ns` : `${inBytes ? 'bytes' : 'samples'} ${whole}`, `frames ${tree.count - 1}`,
    `matches ${s.found ? `${s.found.frames} frames, ${plainAmount(s.matched)}, ${percent(s.matched, whole)}` : 'none'}`,
    `zoom ${nameOf(s.view.name(s.zoom))} ${plainAmount(s.view.total(s.zoom))}, ${percent(s.view.total(s.zoom), whole)}`,
    `view ${s.view === reverse ? 'reverse ' : ''}${s.icicle ? 'icicle' : 'flame'}${s.folded ? ' folded' : ''}${s.frames ? ' all' : ''}${swapped ? ' before' : ''}${s.dark ? ' dark' : ' light'}`,
    `drawn ${s.plan.boxes} boxes, ${s.plan.rows.length} rows`,
  ];
  if (calls.on) parts.push(`calls ${calls.rows.length} rows by ${calls.sort}`);
  $('summary').textContent = parts.join('; ');
  $('summary').dataset.ms = s.took.toFixed(1);
  $('matched').textContent = s.query === '' ? '' : !s.found ? 'not an expression' :
    !s.found.frames ? 'no match' : `matched ${percent(s.matched, whole)}${zoomedShare()}`;
  $('back').disabled = s.trail.length === 0;
  for (const [id, on] of [['reverse', s.view === reverse], ['icicle', s.icicle], ['fold', s.folded], ['frames', s.frames], ['dark', s.dark], ['before', swapped]]) $(id).setAttribute('aria-pressed', on);
  address();
}

function zoomedShare() {
  const {view, zoom, found} = state;
  if (view !== forward || zoom === 0) return '';
  return `, ${percent(matchedSamples(found.hit, zoom), tree.total[zoom])} of the zoom`;
}

function address() {
  const parts = [];
  if (state.query) parts.push('q=' + encodeURIComponent(state.query));
  if (state.view === reverse) parts.push('reverse');
  if (state.icicle) parts.push('icicle');
  if (state.folded) parts.push('fold');
  if (state.frames) parts.push('frames');
  if (calls.on) parts.push('calls');
  if (swapped) parts.push('before');
  if (state.dark !== prefersDark()) parts.push(state.dark ? 'dark' : 'light');
  if (state.view === forward && state.zoom !== 0) parts.push('zoom=' + state.zoom);
  try {
    history.replaceState(null, '', '#' + parts.join('&'));
  } catch { /* some viewers forbid it */ }
}

const prefersDark = () => matchMedia('(prefers-color-scheme: dark)').matches;

function readAddress() {
  const set = new Map(location.hash.slice(1).split('&').map(p => {
    const i = p.indexOf('=');
    return i < 0 ? [p, ''] : [p.slice(0, i), p.slice(i + 1)];
  }));
  const text = s => {
    try {
      return decodeURIComponent(s);
    } catch {
      return s;
    }
  };
  setDark(set.has('dark') || (prefersDark() && !set.has('light')));
  state.icicle = set.has('icicle');
  state.folded = set.has('fold');
  state.frames = set.has('frames') && !!page.whole;
  calls.on = set.has('calls');
  setTree(state.folded, state.frames);
  if (diff && swapped !== set.has('before')) showOther();
  state.view = set.has('reverse') ? reverse : forward;
  Object.assign(state, {trail: [], selected: null, hovered: null, plan: null}); // the caller lays it out
  const zoom = Number(set.get('zoom'));
  state.zoom = state.view === forward && Number.isInteger(zoom) && zoom > 0 && zoom < tree.count ? zoom : state.view.root;
  $('query').value = text(set.get('q') || '');
  find($('query').value);
}

function setDark(on) {
  state.dark = on;
  document.documentElement.classList.toggle('dark', on);
  (diff ? drawChangeLegend : drawLegend)($('legend'), on);
  if (guesses) $('legend').append(legendOfGuess());
}

// showOther shows the shape of the other recording.
function showOther() {
  swap();
  whole = recorded.total[0];
}

function find(query) {
  const began = performance.now();
  state.query = query;
  state.found = null;
  state.matched = 0;
  let pattern = null;
  try {
    // A pattern with capital letters is case-sensitive.
    pattern = query === '' ? null : new RegExp(query, /[A-Z]/.test(query.replace(/\\./g, '')) ? '' : 'i');
  } catch { /* the field says so */ }
  $('query').classList.toggle('bad', query !== '' && !pattern);
  if (pattern) {
    state.found = search(pattern);
    state.matched = matchedSamples(state.found.hit, 0);
  }
  if (state.plan) {
    redraw();
    drawCalls();
    state.took = performance.now() - began;
    tell();
  }
}

function zoomTo(node, remember = true) {
  if (node === state.zoom) return;
  if (remember) state.trail.push(state.zoom);
  state.zoom = node;
  relayout();
}

function back() {
  if (state.trail.length) zoomTo(state.trail.pop(), false);
}

function reset() {
  state.trail = [];
  state.selected = null;
  zoomTo(state.view.root, false);
  $('query').value = '';
  find('');
}

function setView(view) {
  Object.assign(state, {view, zoom: view.root, trail: [], hovered: null, selected: null});
  relayout();
  details();
}

// setShape shows another tree: with recursion folded or not, with all frames or only the informative ones.
function setShape(folded, all) {
  const reversed = state.view === reverse;
  Object.assign(state, {folded, frames: all && !!page.whole, plan: null}); // the plan has nodes of the old tree
  setTree(state.folded, state.frames);
  calls.open.clear();
  calls.root = null;
  find(state.query);
  setView(reversed ? reverse : forward);
}

const toggle = {
  fold: () => setShape(!state.folded, state.frames),
  frames: () => setShape(state.folded, !state.frames),
  callTree() {
    calls.on = !calls.on;
    tellCalls();
    relayout(true);
    showCall();
    (calls.on ? $('calls') : scroll).focus();
  },
  reverse: () => setView(state.view === reverse ? forward : reverse),
  before() {
    if (!diff) return;
    const {view, zoom} = state, reversed = view === reverse;
    showOther();
    find(state.query);
    setView(reversed ? reverse : forward);
    if (!reversed && zoom !== 0 && forward.total(zoom) > 0) zoomTo(zoom);
  },
  icicle() {
    state.icicle = !state.icicle;
    relayout();
  },
  dark() {
    setDark(!state.dark);
    redraw();
    drawCalls();
    tell();
  },
};

// Pointing.

function nodeAt(event) {
  const r = canvas.getBoundingClientRect();
  const i = Math.floor((event.clientY - r.top + scroll.scrollTop - offset()) / rowHeight);
  const row = state.plan.rows[rowAt(state.plan, i, state.icicle)];
  const box = row && boxAt(row, event.clientX - r.left);
  return box ? box[0] : null;
}

function figures(node) {
  const {view, zoom} = state, total = view.total(node), self = view.self(node), parent = view.parent(node);
  const of = [percent(total, whole)];
  if (zoom !== view.root && view.depth(node) > view.depth(zoom)) of.push(`${percent(total, view.total(zoom))} of the zoom`);
  if (parent !== null && parent !== view.root) of.push(`${percent(total, view.total(parent))} of ${view === reverse ? 'its callee' : 'its caller'}`);
  return (diff ? changeText(view, node) + '; ' : '') + `${amount(total)}, ${of.join(', ')}; ` +
    (view === reverse ? `root ${figure(self)}` : `self ${figure(self)}, ${percent(self, whole)}`);
}

// kindText returns the kind of a frame's code. For a method that ran as several kinds, it returns the share of each.
function kindText(node, id) {
  const parts = state.view === forward && tree === recorded && recorded.splits.get(node), all = parts && parts.reduce((a, b) => a + b);
  if (!parts) return kinds[kindOf(id)][0];
  const some = parts.map((n, kind) => [n, kinds[kind][0].replace('Java, ', '')]).filter(([n]) => n > 0).sort((a, b) => b[0] - a[0]);
  return 'Java: ' + some.map(([n, text]) => `${percent(n, all)} ${text}`).join(', ');
}

// details describes the frame under the pointer, or else the selected one, or else the zoom.
function details() {
  const node = state.hovered ?? state.selected ?? state.zoom, id = state.view.name(node);
  $('frame').textContent = nameOf(id);
  $('figures').textContent = (id < 0 ? '' : kindText(node, id) + '; ' + guessText(state.view, node)) + figures(node);
  $('copy').hidden = id < 0;
}

function hover(event) {
  const node = nodeAt(event), tip = $('tip');
  if (node !== state.hovered) {
    state.hovered = node;
    canvas.style.cursor = node === null ? '' : 'pointer';
    redrawSoon();
    details();
  }
  tip.hidden = node === null;
  if (node === null) return;
  const id = state.view.name(node);
  tip.textContent = nameOf(id) + '\n' + (id < 0 ? '' : kindText(node, id) + '; ' + guessText(state.view, node)) + figures(node);
  tip.style.left = Math.max(0, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = (event.clientY + 24 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 8 : event.clientY + 18) + 'px';
}

async function copy() {
  const id = state.view.name(state.hovered ?? state.selected ?? state.zoom);
  if (id < 0) return;
  $('figures').textContent = (await copyText(names[id])) ? 'copied' : 'could not copy';
}

// The keyboard.

function select(node) {
  if (node === null || node === undefined) return;
  state.selected = node;
  state.hovered = null;
  $('tip').hidden = true;
  const i = rowAt(state.plan, state.view.depth(node), state.icicle);
  if (i * rowHeight < scroll.scrollTop || (i + 1) * rowHeight > scroll.scrollTop + scroll.clientHeight) scrollToRow(state.view.depth(node));
  redraw();
  showCall();
  details();
}

// step moves from the selected box to its caller, its widest callee, or its neighbour.
function step(direction) {
  const {view, plan} = state, at = state.selected ?? state.zoom;
  const depth = view.depth(at), row = plan.rows[depth] || [];
  if (direction === 'caller') return select(view.parent(at));
  const i = row.findIndex(b => b[0] === at);
  if (i < 0) return select(state.zoom); // it is no longer drawn
  if (direction === 'callee') {
    const box = row[i], kids = (plan.rows[depth + 1] || []).filter(b => view.parent(b[0]) === at);
    return box && kids.length ? select(kids.reduce((a, b) => (b[2] > a[2] ? b : a))[0]) : undefined;
  }
  const next = row[i + (direction === 'right' ? 1 : -1)];
  if (next) select(next[0]);
}

// walk moves to the next drawn match, or to the previous one.
function walk(by) {
  const {found, plan, view} = state;
  if (!found || !found.frames) return;
  const all = matches(plan, view, found.hit);
  if (!all.length) return;
  const at = all.indexOf(state.selected);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : (at + by + all.length) % all.length;
  select(all[next]);
  $('figures').textContent = `match ${next + 1} of ${all.length}; ` + $('figures').textContent;
}

const keyHelp = [
  ['/', 'search'], ['n, N', 'the next match, the one before'], ['Esc', 'clear the search, then the zoom'], ['arrows', 'go from frame to frame'], ['Enter', 'zoom to the frame'],
  ['Backspace', 'back to the zoom before'], ['0', 'show everything'], ['r', 'reverse: callers of each leaf'], ['i', 'icicle or flame'],
  ['f', 'fold recursion: a frame that is called again goes on where it was called first'],
  ['t', 'the call tree beside the flame graph'], ['d', 'dark or light'], ['c', "copy the frame's name"], ['?', 'about'],
];

function escape() {
  if (state.query) {
    $('query').value = '';
    find('');
  } else zoomTo(state.view.root);
  $('query').blur();
}

const keys = {
  '/': () => $('query').select(),
  Escape: escape,
  ArrowUp: () => step(state.icicle ? 'caller' : 'callee'),
  ArrowDown: () => step(state.icicle ? 'callee' : 'caller'),
  ArrowLeft: () => step('left'),
  ArrowRight: () => step('right'),
  Enter: () => zoomTo(state.selected ?? state.zoom),
  Backspace: back,
  0: reset,
  n: () => walk(1),
  N: () => walk(-1),
  a: toggle.frames,
  f: toggle.fold,
  r: toggle.reverse,
  i: toggle.icicle,
  t: toggle.callTree,
  d: toggle.dark,
  b: toggle.before,
  c: copy,
  '?': () => $('about').showModal(),
};

// Buttons and dialogs.

function begin() {
  $('before').hidden = !diff;
  $('frames').hidden = !page.whole;
  if (diff) keyHelp.push(['b', 'the shape of the recording before, or of the one after']);
  if (page.whole) keyHelp.push(['a', 'all frames: also those by which threads begin, and in which they just wait']);
  keyHelp.push(['in the call tree', '\u2190 \u2192 close and open, * opens the hottest way down, s sorts, Enter zooms']);
  for (const fact of page.about) row($('facts'), fact);
  for (const key of keyHelp) row($('keys'), key);
  for (const id of ['reverse', 'icicle', 'fold', 'frames', 'callTree', 'dark', 'before']) $(id).onclick = toggle[id];
  $('back').onclick = back;
  $('reset').onclick = reset;
  $('copy').onclick = copy;
  $('aboutButton').onclick = keys['?'];
  let timer;
  $('query').oninput = () => {
    clearTimeout(timer);
    timer = setTimeout(() => find($('query').value), tree.count > 200000 ? 150 : 0);
  };
  $('find').onsubmit = event => {
    event.preventDefault();
    clearTimeout(timer);
    find($('query').value);
    scroll.focus();
    walk(1);
  };
  canvas.onmousemove = hover;
  canvas.onmouseleave = () => {
    state.hovered = null;
    $('tip').hidden = true;
    redrawSoon();
    details();
  };
  canvas.onclick = event => {
    const node = nodeAt(event);
    if (node === null) return;
    state.selected = node;
    zoomTo(node);
    redraw();
    showCall();
    details();
  };
  scroll.onscroll = redrawSoon;
  listenKeys(keys, callKeysAt);
  beginCalls();
  new ResizeObserver(() => relayout(true)).observe(scroll);
  addEventListener('hashchange', () => {
    readAddress();
    relayout();
    details();
  });
  readAddress();
  relayout();
  details();
}

begin();
