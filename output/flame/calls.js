// The call tree: a table of the view's frames that opens frame by frame, beside the flame graph. Both have the same
// root (the zoom) and the same selection. Only visible rows are elements of the page.

const callHeight = 20;

const calls = {on: false, rows: [], open: new Set(), sort: 'total', root: null};

// The columns, with their sort keys: the largest first.
const callColumns = diff ? {
  total: [swappedName, n => percent(state.view.total(n), whole), n => state.view.total(n)],
  change: [() => 'change', n => signed(changePoints(n)), n => Math.abs(changePoints(n))],
} : {
  total: [() => 'total', n => percent(state.view.total(n), whole), n => state.view.total(n)],
  self: [() => 'self', n => percent(state.view.self(n), whole), n => state.view.self(n)],
};

function swappedName() { return swapped ? 'before' : 'after'; }

function changePoints(n) {
  const {before, after} = shares(state.view, n);
  return 100 * (after - before);
}

// kidsOf returns the frames that node called, in the order of the table.
function kidsOf(node) {
  const {view} = state, kids = [];
  view.each(node, n => kids.push(n));
  if (calls.sort === 'name') {
    const text = n => nameOf(view.name(n));
    return kids.sort((a, b) => (text(a) < text(b) ? -1 : 1));
  }
  const by = callColumns[calls.sort][2];
  return kids.sort((a, b) => by(b) - by(a) || view.total(b) - view.total(a));
}

// listCalls makes the list of all rows. If a frame is its caller's only callee, it has the same indentation as its
// caller, so that long paths stay visible.
function listCalls() {
  const rows = [], pending = [{node: state.zoom, indent: 0, level: 1}];
  while (pending.length) {
    const row = pending.pop(), kids = kidsOf(row.node);
    row.leaf = kids.length === 0;
    row.open = !row.leaf && calls.open.has(row.node);
    rows.push(row);
    if (!row.open) continue;
    const indent = row.indent + (kids.length > 1 || rows.length === 1 ? 1 : 0);
    for (const node of kids.reverse()) pending.push({node, indent, level: row.level + 1});
  }
  calls.rows = rows;
}

// openHottest opens the path from node along the widest callees, as long as each has a third of its caller.
function openHottest(node) {
  const {view} = state;
  for (let at = node, widest; at !== null; at = widest) {
    calls.open.add(at);
    widest = null;
    view.each(at, n => {
      if (3 * view.total(n) >= view.total(at) && (widest === null || view.total(n) > view.total(widest))) widest = n;
    });
  }
}

// tellCalls shows the tree for the present view.
function tellCalls() {
  $('calls').hidden = !calls.on;
  $('callTree').setAttribute('aria-pressed', calls.on);
  if (!calls.on) return;
  if (calls.root !== state.zoom) {
    calls.root = state.zoom;
    if (!calls.open.has(state.zoom)) openHottest(state.zoom); // otherwise it stays as the user left it
  }
  listCalls();
  for (const [key, [text]] of [...Object.entries(callColumns), ['name', [() => 'frame']]]) {
    const head = $('calls').querySelector(`[data-sort=${key}]`);
    head.textContent = text();
    head.parentElement.setAttribute('aria-sort', calls.sort === key ? (key === 'name' ? 'ascending' : 'descending') : 'none');
  }
  $('callRows').style.height = calls.rows.length * callHeight + 'px';
  $('calls').setAttribute('aria-rowcount', calls.rows.length + 1);
  drawCalls();
}

const callAt = () => calls.rows.findIndex(row => row.node === (state.selected ?? state.zoom));

// drawCalls makes elements for the visible rows. It leaves out the packages of Java names, which the line at the bottom
// has.
function drawCalls() {
  if (!calls.on) return;
  const box = $('calls'), {view} = state, hit = state.found && state.found.hit;
  const first = Math.max(0, Math.floor(box.scrollTop / callHeight) - 5), selected = state.selected ?? state.zoom;
  const last = Math.min(calls.rows.length, first + Math.ceil(box.clientHeight / callHeight) + 10);
  box.removeAttribute('aria-activedescendant');
  const made = [];
  for (let i = first; i < last; i++) {
    const row = calls.rows[i], id = view.name(row.node), line = document.createElement('div');
    const cell = (text, kind) => {
      const span = document.createElement('span');
      span.setAttribute('role', 'gridcell');
      span.className = kind;
      span.textContent = text;
      line.append(span);
      return span;
    };
    line.setAttribute('role', 'row');
    line.setAttribute('aria-level', row.level);
    line.setAttribute('aria-rowindex', i + 2);
    line.setAttribute('aria-selected', row.node === selected);
    if (!row.leaf) line.setAttribute('aria-expanded', row.open);
    line.className = hit && id >= 0 && hit[id] ? 'call hit' : 'call';
    line.style.top = i * callHeight + 'px';
    line.dataset.row = i;
    for (const [, text] of Object.values(callColumns)) cell(text(row.node), 'amount');
    const name = cell(id < 0 ? nameOf(id) : shorter(id), 'name'), mark = document.createElement('i'), kind = document.createElement('b');
    mark.textContent = row.leaf ? '' : row.open ? '\u25be' : '\u25b8';
    kind.style.background = id < 0 ? 'transparent' : diff ? changeColour(view, row.node, state.dark) : colour(kindOf(id), -1, state.dark);
    name.style.paddingLeft = row.indent * 12 + 'px';
    name.prepend(mark, kind);
    if (row.node === selected) {
      line.id = 'call';
      box.setAttribute('aria-activedescendant', 'call');
    }
    made.push(line);
  }
  $('callRows').replaceChildren(...made);
}

// showCall scrolls to the selected row, and opens its callers.
function showCall() {
  if (!calls.on) return;
  const at = state.selected ?? state.zoom;
  if (callAt() < 0) {
    for (let n = state.view.parent(at); n !== null; n = state.view.parent(n)) calls.open.add(n);
    listCalls();
    $('callRows').style.height = calls.rows.length * callHeight + 'px';
  }
  const box = $('calls'), y = callAt() * callHeight, room = box.clientHeight - 2 * callHeight; // below the head
  if (y < box.scrollTop || y > box.scrollTop + room) box.scrollTop = Math.max(0, y - room / 2);
  drawCalls();
}

// retell shows the tree after its rows have changed.
function retell() {
  tellCalls();
  tell();
}

function toggleCall(row, open = !row.open) {
  if (row.leaf || row.open === open) return false;
  if (open) calls.open.add(row.node);
  else calls.open.delete(row.node);
  retell();
  return true;
}

function sortCalls(by) {
  calls.sort = by;
  retell();
  showCall();
}

// stepCall selects the row that is by rows below the selected one.
function stepCall(by) {
  const i = Math.min(Math.max(callAt() + by, 0), calls.rows.length - 1);
  select(calls.rows[i].node);
}

const callPage = () => Math.max(1, Math.floor($('calls').clientHeight / callHeight) - 2);

// callKeys are the keys while the tree has the focus.
const callKeys = {
  ArrowDown: () => stepCall(1),
  ArrowUp: () => stepCall(-1),
  PageDown: () => stepCall(callPage()),
  PageUp: () => stepCall(-callPage()),
  Home: () => stepCall(-calls.rows.length),
  End: () => stepCall(calls.rows.length),
  ArrowRight() {
    const row = calls.rows[callAt()];
    if (row && !toggleCall(row, true) && !row.leaf) stepCall(1);
  },
  ArrowLeft() {
    const row = calls.rows[callAt()];
    if (row && !toggleCall(row, false) && row.level > 1) select(state.view.parent(row.node));
  },
  ' ': () => calls.rows[callAt()] && toggleCall(calls.rows[callAt()]),
  '*'() {
    openHottest(state.selected ?? state.zoom);
    retell();
  },
  s() {
    const all = [...Object.keys(callColumns), 'name'];
    sortCalls(all[(all.indexOf(calls.sort) + 1) % all.length]);
  },
};

const callKeysAt = event => ($('calls').contains(event.target) && calls.on ? callKeys : {});

function beginCalls() {
  const head = $('callHead');
  for (const key of [...Object.keys(callColumns), 'name']) {
    const cell = document.createElement('span'), button = document.createElement('button');
    cell.setAttribute('role', 'columnheader');
    cell.className = key === 'name' ? 'name' : 'amount';
    button.dataset.sort = key;
    button.tabIndex = -1;
    button.onclick = () => sortCalls(key);
    cell.append(button);
    head.append(cell);
  }
  const rowOf = event => {
    const line = event.target.closest('.call');
    return line && calls.rows[line.dataset.row];
  };
  $('callRows').onclick = event => {
    const row = rowOf(event);
    if (!row) return;
    select(row.node);
    if (event.target.tagName === 'I') toggleCall(calls.rows[callAt()]);
  };
  $('callRows').ondblclick = event => rowOf(event) && zoomTo(rowOf(event).node);
  let waiting = false;
  $('calls').onscroll = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      drawCalls();
    });
  };
}
