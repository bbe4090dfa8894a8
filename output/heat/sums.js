// Sums over samples: by cell, by lane, and by stack. A filter is {lane, on, mask}: a lane or -1; the states that are
// shown, or null; the nodes that count, or null.

const stateKind = 9; // of draw.js's kinds

// stateOrder is the order in which users need states: what ran, what was kept from running, what rests.
const stateOrder = ['running', 'runnable', 'blocked', 'file', 'socket', 'parked', 'waiting', 'sleeping', 'in VM', 'in native', 'stopped'];

// statesOf returns the states at the ends of stacks: their names, and for each node the number of its state, or -1.
function statesOf(tree) {
  const found = stateOrder.slice(), used = new Set(), number = new Map(found.map((s, i) => [s, i])), of = new Int8Array(tree.count).fill(-1), byName = new Map();
  for (let n = 1; n < tree.count; n++) {
    const id = tree.name[n];
    if (kindOf(id) !== stateKind) continue;
    if (!byName.has(id)) {
      const word = names[id].slice(1, -1).split(': ', 1)[0];
      if (!number.has(word) && found.length < 32) number.set(word, found.push(word) - 1);
      byName.set(id, number.has(word) ? number.get(word) : -1);
    }
    of[n] = byName.get(id);
    used.add(of[n]);
  }
  return {names: found, of, used: found.map((_, i) => used.has(i))};
}

// containing marks the nodes whose stacks have a frame with a hit name.
function containing(tree, hit) {
  const mask = new Uint8Array(tree.count);
  for (let n = 1; n < tree.count; n++) mask[n] = mask[tree.parent[n]] | hit[tree.name[n]];
  return mask;
}

const counts = (f, i) => (f.lane < 0 || entry.lane[i] === f.lane) && f.on[entry.node[i]] && (!f.mask || f.mask[entry.node[i]]);

// byCell sums up each cell.
function byCell(f) {
  const out = new Float64Array(cells), step = entry.cells ? new Float64Array(cells + 1) : null;
  for (let i = 0; i < entry.count; i++) {
    if (!counts(f, i)) continue;
    if (!step || entry.cells[i] === 1) {
      out[entry.cell[i]] += entry.weight[i];
      continue;
    }
    const each = entry.weight[i] / entry.cells[i];
    step[entry.cell[i]] += each;
    step[entry.cell[i] + entry.cells[i]] -= each;
  }
  for (let cell = 0, sum = 0; step && cell < cells; cell++) {
    sum += step[cell];
    if (sum < 1e-4) sum = 0; // a rounding error
    out[cell] += sum;
  }
  return out;
}

function byColumn(perCell) {
  const out = new Float64Array(page.columns);
  for (let c = 0; c < cells; c++) out[Math.floor(c / page.rows)] += perCell[c];
  return out;
}

// byLane sums up each lane in each column. It ignores the filter's lane.
function byLane(f) {
  const out = new Float64Array(laneCount * page.columns), every = {...f, lane: -1};
  for (let i = 0; i < entry.count; i++) {
    if (!counts(every, i)) continue;
    const at = entry.lane[i] * page.columns, n = entry.cells ? entry.cells[i] : 1;
    const first = Math.floor(entry.cell[i] / page.rows), last = Math.floor((entry.cell[i] + n - 1) / page.rows);
    if (first === last) {
      out[at + first] += entry.weight[i];
      continue;
    }
    for (let c = first; c <= last; c++) {
      const from = Math.max(entry.cell[i], c * page.rows), to = Math.min(entry.cell[i] + n, (c + 1) * page.rows);
      out[at + c] += (entry.weight[i] * (to - from)) / n;
    }
  }
  return out;
}

// sumStacks sets a tree's figures to the sums of the cells from..to.
function sumStacks(t, from, to, f) {
  t.self.fill(0);
  t.total.fill(0);
  t.guess.fill(0);
  const add = (i, weight) => {
    t.self[entry.node[i]] += weight;
    if (entry.guess[i]) t.guess[entry.node[i]] += weight;
  };
  for (let i = firstEntry[Math.max(from - longest + 1, 0)], end = firstEntry[to]; i < end; i++) {
    if (!counts(f, i)) continue;
    if (!entry.cells) {
      add(i, entry.weight[i]);
      continue;
    }
    const within = Math.min(entry.cell[i] + entry.cells[i], to) - Math.max(entry.cell[i], from);
    if (within > 0) add(i, (entry.weight[i] * within) / entry.cells[i]);
  }
  return measure(t);
}

// sameShape makes a tree with the same nodes and figures of its own.
function sameShape(t) {
  const zeros = () => new Float64Array(t.count);
  return {...t, self: zeros(), total: zeros(), start: zeros(), guess: zeros()};
}

// change compares a node's shares in two trees: -1 gone, 0 the same, 1 new.
function change(before, after, n) {
  const a = before.total[0] ? before.total[n] / before.total[0] : 0, b = after.total[0] ? after.total[n] / after.total[0] : 0;
  return a + b > 0 ? (b - a) / (a + b) : 0;
}

// scaleOf returns the value with the strongest colour: few cells are above it.
function scaleOf(values) {
  const some = values.filter(v => v > 0).sort();
  return some.length ? some[Math.min(Math.floor(some.length * 0.998), some.length - 1)] : 1;
}
