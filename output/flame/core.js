// What all pages with frames share: names and trees, decoded into flat arrays, and the view of a tree. encode.go has
// the encoded form.

const digits64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

// unpackNames: each name begins with the number of characters that it shares with the previous name.
function unpackNames(packed) {
  const out = new Array(packed.length);
  let last = '';
  for (let i = 0; i < out.length; i++) {
    const s = packed[i];
    last = last.slice(0, digits64.indexOf(s[0])) + s.slice(1);
    out[i] = last;
  }
  return out;
}

function bytesOf(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// numbersOf reads variable-length numbers, one for each call.
function numbersOf(bytes) {
  let at = 0;
  return () => {
    let value = 0, scale = 1;
    for (;;) {
      const b = bytes[at++];
      value += (b & 127) * scale;
      if (!(b >= 128)) return value;
      scale *= 128;
    }
  };
}

// A tree in preorder. Node 0 is the root, which is not a frame. The subtree of n is n to end[n]. measure computes what
// follows from name, parent and self. In a comparison, a tree also has the figures of its nodes in the earlier
// recording.
function newTree(count, compared) {
  return {
    count,
    name: new Int32Array(count), depth: new Int32Array(count), parent: new Int32Array(count), end: new Int32Array(count),
    self: new Float64Array(count), total: new Float64Array(count), start: new Float64Array(count),
    wasSelf: compared ? new Float64Array(count) : null, was: compared ? new Float64Array(count) : null,
  };
}

function measure(t) {
  const {count, was} = t;
  for (let n = 1; n < count; n++) t.depth[n] = t.depth[t.parent[n]] + 1;
  for (let n = count - 1; n >= 0; n--) {
    t.total[n] += t.self[n];
    if (was) was[n] += t.wasSelf[n];
    if (!t.end[n]) t.end[n] = n + 1;
    const p = t.parent[n];
    if (n > 0) {
      t.total[p] += t.total[n];
      if (was) was[p] += was[n];
      if (!t.end[p]) t.end[p] = t.end[n];
    }
  }
  return place(t);
}

// place returns where a node begins, in samples: after its earlier siblings. The parent's own samples come last.
function place(t) {
  const next = new Float64Array(t.count);
  for (let n = 1; n < t.count; n++) {
    const p = t.parent[n];
    t.start[n] = t.start[p] + next[p];
    next[p] += t.total[n];
  }
  return t;
}

// unpackTree reads a tree's nodes. If before is given, it also reads their earlier figures: own samples, the
// comparison's result, and the noise in points.
function unpackTree(count, rootSelf, bytes, before) {
  const t = newTree(count + 1, before), number = numbersOf(bytes);
  t.name[0] = -1;
  t.parent[0] = -1;
  t.self[0] = rootSelf;
  let last = 0;
  for (let n = 1; n < t.count; n++) {
    t.name[n] = number();
    let up = number();
    t.self[n] = number();
    let parent = last;
    while (up-- > 0) parent = t.parent[parent];
    t.parent[n] = parent;
    last = n;
  }
  if (before) {
    const of = numbersOf(before);
    t.told = new Uint8Array(t.count);
    t.noise = new Float64Array(t.count);
    for (let n = 0; n < t.count; n++) {
      t.wasSelf[n] = of();
      t.told[n] = of();
      t.noise[n] = of() / 1000;
    }
  }
  return measure(t);
}

// A view is a tree as it is drawn. Its nodes are opaque to the code that draws it. forwardOf shows the tree that
// current returns unchanged, from its root on.
function forwardOf(current) {
  return {
    root: 0,
    name: n => current().name[n],
    total: n => current().total[n],
    self: n => current().self[n],
    guess: n => (current().guess ? current().guess[n] : 0),
    was: n => current().was[n],
    start: n => current().start[n],
    depth: n => current().depth[n],
    parent: n => (n === 0 ? null : current().parent[n]),
    each(n, visit) {
      const tree = current();
      for (let c = n + 1; c < tree.end[n]; c = tree.end[c]) visit(c);
    },
  };
}
