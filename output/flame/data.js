// The page's data: names, kinds and the tree.

const page = JSON.parse(document.getElementById('data').textContent);

const names = unpackNames(page.names);

const kindOf = id => page.kinds.charCodeAt(id) - 65;

// unpackPart reads one of the page's trees. splits has the methods that ran as several kinds of code: their nodes, and
// their samples of each kind. guess is how many of a node's own samples are guesses.
function unpackPart(part, before) {
  const t = unpackTree(part.count, part.rootSelf, bytesOf(part.nodes), before);
  t.splits = new Map((part.split || []).map(([node, ...parts]) => [node, parts]));
  t.guess = new Float64Array(t.count);
  for (const [node, n] of part.guessed || []) t.guess[node] = n;
  return t;
}

const drawn = unpackPart(page, page.diff && bytesOf(page.diff.nodes));

// recorded is the recorded tree in one of two forms: as it is drawn at first, or with all frames. The second form is
// decoded when it is first needed.
let recorded = drawn, entire = null;

// methodOf maps a name to the first name with the same text, if kinds of code are merged: a method is one frame.
const methodOf = (() => {
  if (!page.split) return id => id;
  const first = new Int32Array(names.length);
  for (let i = 1; i < names.length; i++) first[i] = names[i] === names[i - 1] && kindOf(i) <= 3 ? first[i - 1] : i;
  return id => first[id];
})();

// foldWithin is how many callers of a frame are searched for an earlier call of the same method.
const foldWithin = 8;

// foldRecursion makes a tree in which the callees of a repeated call are under the first call.
function foldRecursion(t) {
  const parent = [-1], name = [-1], self = [t.self[0]], kids = [null], guess = [0], wasSelf = [page.diff ? t.wasSelf[0] : 0];
  const made = new Map(); // by caller and name
  const at = new Int32Array(t.count); // by node of t: its node here
  const place = (caller, id) => {
    for (let n = caller, i = 0; n > 0 && i <= foldWithin; n = parent[n], i++) if (methodOf(name[n]) === methodOf(id)) return n;
    const key = caller * names.length + methodOf(id);
    let n = made.get(key);
    if (n === undefined) {
      n = parent.push(caller) - 1;
      name.push(id);
      self.push(0);
      guess.push(0);
      wasSelf.push(0);
      kids.push(null);
      (kids[caller] || (kids[caller] = [])).push(n);
      made.set(key, n);
    }
    return n;
  };
  for (let n = 1; n < t.count; n++) {
    at[n] = place(at[t.parent[n]], t.name[n]);
    self[at[n]] += t.self[n];
    guess[at[n]] += t.guess[n];
    if (page.diff) wasSelf[at[n]] += t.wasSelf[n];
  }
  const out = newTree(parent.length, page.diff);
  out.guess = new Float64Array(parent.length);
  const number = new Int32Array(parent.length), pending = [0];
  for (let n = 0; pending.length; n++) {
    const from = pending.pop();
    number[from] = n;
    out.name[n] = name[from];
    out.self[n] = self[from];
    out.guess[n] = guess[from];
    if (page.diff) out.wasSelf[n] = wasSelf[from];
    out.parent[n] = from === 0 ? -1 : number[parent[from]];
    for (const kid of (kids[from] || []).sort((a, b) => name[b] - name[a])) pending.push(kid);
  }
  return measure(out);
}

let tree = recorded;

const forward = forwardOf(() => tree);

// The reverse view has the leaves in its first row, and their callers below. It is made only as far as it is shown: a
// node keeps the nodes of the tree that it stands for.
function reverseOf(tree) {
  const slot = new Int32Array(names.length + 1).fill(-1); // by name: its index in the current kids
  const seen = new Int32Array(tree.count).fill(-1); // by node of the tree: its index in its group

  const make = (parent, name, start) => ({parent, name, start, total: 0, was: 0, self: 0, guess: 0, depth: parent ? parent.depth + 1 : 0, at: [], weight: [], wasWeight: [], kids: null});

  // group sorts (node, weight) pairs into kids by name. A repeated node becomes one.
  const group = (parent, nodes, weights, wasWeights) => {
    const kids = [];
    for (let i = 0; i < nodes.length; i++) {
      const n = nodes[i], name = methodOf(tree.name[n]);
      if (slot[name] < 0) slot[name] = kids.push(make(parent, name, 0)) - 1;
      const kid = kids[slot[name]];
      if (!parent.parent) kid.guess += tree.guess[n];
      kid.total += weights[i];
      kid.was += wasWeights[i];
      if (seen[n] >= 0) {
        kid.weight[seen[n]] += weights[i];
        kid.wasWeight[seen[n]] += wasWeights[i];
      } else {
        seen[n] = kid.at.push(n) - 1;
        kid.weight.push(weights[i]);
        kid.wasWeight.push(wasWeights[i]);
      }
    }
    for (const kid of kids) {
      slot[kid.name] = -1;
      for (const n of kid.at) seen[n] = -1;
    }
    kids.sort((a, b) => b.total - a.total || a.name - b.name);
    let start = parent.start;
    for (const kid of kids) {
      kid.start = start;
      start += kid.total;
    }
    return kids;
  };

  const expand = node => {
    const nodes = [], weights = [], wasWeights = [], was = n => (page.diff ? tree.wasSelf[n] : 0);
    if (!node.parent) {
      for (let n = 1; n < tree.count; n++) {
        if (tree.self[n] > 0 || was(n) > 0) {
          nodes.push(n);
          weights.push(tree.self[n]);
          wasWeights.push(was(n));
        }
      }
    } else {
      node.self = 0;
      for (let i = 0; i < node.at.length; i++) {
        const p = tree.parent[node.at[i]];
        if (p > 0) {
          nodes.push(p);
          weights.push(node.weight[i]);
          wasWeights.push(node.wasWeight[i]);
        } else node.self += node.weight[i];
      }
    }
    node.kids = group(node, nodes, weights, wasWeights);
    return node.kids;
  };

  const root = make(null, -1, 0);
  root.total = tree.total[0];
  if (page.diff) root.was = tree.was[0];
  return {
    root,
    name: n => n.name,
    total: n => n.total,
    self: n => (n.kids || expand(n), n.self),
    guess: n => n.guess,
    was: n => n.was,
    start: n => n.start,
    depth: n => n.depth,
    parent: n => n.parent,
    each(n, visit) {
      for (const kid of n.kids || expand(n)) visit(kid);
    },
  };
}

let reverse = reverseOf(tree);

// setTree sets the tree of all views.
function setTree(folded, all) {
  if (all && page.whole) recorded = entire || (entire = unpackPart(page.whole));
  else recorded = drawn;
  tree = folded ? recorded.folded || (recorded.folded = foldRecursion(recorded)) : recorded;
  reverse = reverseOf(tree);
}

// search returns the frames that a regular expression matches, and the samples under node with such a frame on their
// stack. A stack with two such frames counts once.
function search(pattern) {
  const hit = new Uint8Array(names.length + 1);
  let hits = 0;
  for (let i = 0; i < names.length; i++) if (pattern.test(names[i])) hits += hit[i] = 1;
  let frames = 0;
  for (let n = 1; n < tree.count; n++) frames += hit[tree.name[n]];
  return {hit, names: hits, frames};
}

function matchedSamples(hit, under) {
  let samples = 0;
  for (let p = under; p > 0; p = tree.parent[p]) if (hit[tree.name[p]]) return tree.total[under];
  for (let n = under + 1; n < tree.end[under];) {
    if (hit[tree.name[n]]) {
      samples += tree.total[n];
      n = tree.end[n];
    } else n++;
  }
  return samples;
}
