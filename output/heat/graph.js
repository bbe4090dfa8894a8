// The flame graph of the selection: its trees, pointing, and moving by keys. The root is at the top, right below the
// selected times.

const graph = {
  trees: null, // {A, B}: with the same shape
  shown: null, // one of them
  before: null, // the other one, in a comparison
  view: forwardOf(() => graph.shown),
  zoom: 0, trail: [], plan: null, hovered: null, selected: null,
};

const blend = (a, b, f) => Math.round(a + (b - a) * f);

// changeColours are the colours of frames whose share is smaller, the same, and larger than before.
const changeColours = {
  light: [[92, 150, 238], [226, 226, 226], [240, 84, 68]],
  dark: [[40, 104, 190], [70, 74, 82], [190, 48, 40]],
};
const changeScale = dark => changeColours[theme(dark)].map(c => `rgb(${c.join()})`);

// changeColour returns red for a frame whose share has grown, and blue for one whose share has shrunk.
function changeColour(node, dark) {
  const r = change(graph.before, graph.shown, node), f = Math.pow(Math.abs(r), 0.8);
  const [less, same, more] = changeColours[theme(dark)], end = r > 0 ? more : less;
  return `rgb(${same.map((v, i) => blend(v, end[i], f)).join()})`;
}

function layoutGraph() {
  const width = $('scroll').clientWidth;
  if (graph.shown.total[graph.zoom] <= 0) { // this selection has no samples of it
    graph.zoom = 0;
    graph.trail = [];
  }
  graph.plan = graph.shown.total[0] > 0 ? layout(graph.view, graph.zoom, width) : {rows: [[[0, 0, width]]], boxes: 1, zoomDepth: 0};
  $('space').style.height = Math.max(graph.plan.rows.length * rowHeight, $('scroll').clientHeight) + 'px';
}

function paintGraph() {
  paint($('canvas'), graph.plan, graph.view, $('scroll').scrollTop, $('scroll').clientWidth, $('scroll').clientHeight, {
    icicle: true, dark: state.dark, hit: state.highlight && !state.highlight.quiet ? state.highlight.hit : null, selected: graph.selected, hovered: graph.hovered,
    colour: graph.before ? n => changeColour(n, state.dark) : null, hatch: guesses ? hatchOf(state.dark) : null,
  });
}

function nodeAt(event) {
  const r = $('canvas').getBoundingClientRect();
  const row = graph.plan.rows[Math.floor((event.clientY - r.top + $('scroll').scrollTop) / rowHeight)];
  const box = row && boxAt(row, event.clientX - r.left);
  return box ? box[0] : null;
}

function shareText(t, n) { return `${percent(t.total[n], t.total[0])} (${amount(t.total[n])})`; }

function graphFigures(n) {
  const {shown, before, zoom} = graph;
  if (before) {
    const points = 100 * ((shown.total[0] ? shown.total[n] / shown.total[0] : 0) - (before.total[0] ? before.total[n] / before.total[0] : 0));
    const what = before.total[n] === 0 ? 'new in B' : `${signed(points)} points`;
    return `A ${shareText(before, n)}, B ${shareText(shown, n)}: ${what}`;
  }
  const of = zoom !== 0 && shown.depth[n] > shown.depth[zoom] ? `, ${percent(shown.total[n], shown.total[zoom])} of the zoom` : '';
  return `${amount(shown.total[n])}, ${percent(shown.total[n], shown.total[0])}${of}; self ${amount(shown.self[n])}`;
}

// details describes the frame under the pointer, or else the selected one, or else the zoom.
function details() {
  const node = graph.hovered ?? graph.selected ?? graph.zoom, id = graph.view.name(node);
  $('frame').textContent = nameOf(id);
  $('figures').textContent = (id < 0 ? '' : kinds[kindOf(id)][0] + '; ' + guessText(graph.view, node)) + graphFigures(node);
  $('copy').hidden = id < 0;
}

function zoomTo(node, remember = true) {
  if (node === graph.zoom) return;
  if (remember) graph.trail.push(graph.zoom);
  graph.zoom = node;
  layoutGraph();
  scrollToNode(node);
  paintGraph();
  details();
  tell();
}

function scrollToNode(node) {
  const box = $('scroll'), y = graph.view.depth(node) * rowHeight;
  if (y < box.scrollTop || y + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(y - 2 * rowHeight, 0);
}

function selectFrame(node) {
  if (node === null || node === undefined) return;
  graph.selected = node;
  graph.hovered = null;
  $('tip').hidden = true;
  scrollToNode(node);
  paintGraph();
  details();
}

// stepFrame moves from the selected frame to its caller, its widest callee, or its neighbour.
function stepFrame(direction) {
  const {view, plan} = graph, at = graph.selected ?? graph.zoom, depth = view.depth(at);
  if (direction === 'caller') return selectFrame(view.parent(at));
  const row = plan.rows[depth] || [], i = row.findIndex(b => b[0] === at);
  if (i < 0) return selectFrame(graph.zoom); // it is no longer drawn
  if (direction === 'callee') {
    const kids = (plan.rows[depth + 1] || []).filter(b => view.parent(b[0]) === at);
    return kids.length ? selectFrame(kids.reduce((a, b) => (b[2] > a[2] ? b : a))[0]) : undefined;
  }
  const next = row[i + (direction === 'right' ? 1 : -1)];
  if (next) selectFrame(next[0]);
}
