// The page's data, decoded into flat arrays. encode.go has the encoded form.

performance.mark('goprof-begin');

const page = JSON.parse(document.getElementById('data').textContent);
const names = unpackNames(page.names);
const kindOf = id => page.kinds.charCodeAt(id) - 65;

const cells = page.rows * page.columns, laneCount = page.lanes.length;
const timed = page.unit === 'time' || page.unit === 'cpu'; // decoded to ns

// Filled in by load.
let tree = null; // of all samples: one of trees
const trees = {drawn: null, whole: null}; // as drawn at first, and with all frames; null if that is the same
const entry = {count: page.entries, cell: null, cells: null, lane: null, node: null, guess: null, weight: null};
const nodesOf = {drawn: null, whole: null}; // by entry.node: the node in each tree
let guesses = false; // some leaves are guesses
let firstEntry = null; // by cell; [cells] is the end
let longest = 1; // greatest number of cells of an entry

async function inflate(base64) {
  const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function load() {
  const whole = page.whole;
  const [nodes, samples, all] = await Promise.all([inflate(page.nodes), inflate(page.samples), whole && inflate(whole.nodes)]);
  tree = trees.drawn = unpackTree(page.count, page.rootSelf, nodes);
  if (whole) trees.whole = unpackTree(whole.count, whole.rootSelf, all);
  const number = numbersOf(samples), {count} = entry;
  const stacks = new Int32Array(page.stacks), guessed = new Uint8Array(page.stacks), wholeStacks = whole && new Int32Array(page.stacks);
  for (let i = 0; i < page.stacks; i++) {
    const n = number();
    stacks[i] = n >>> 1;
    guessed[i] = n & 1;
    guesses ||= n % 2 === 1;
  }
  if (whole) for (let i = 0; i < page.stacks; i++) wholeStacks[i] = number();
  entry.cell = new Int32Array(count);
  for (let i = 0, cell = 0; i < count; i++) entry.cell[i] = cell += number();
  if (page.spans) {
    entry.cells = new Int32Array(count);
    for (let i = 0; i < count; i++) longest = Math.max(longest, entry.cells[i] = number() + 1);
  }
  entry.lane = new Int32Array(count);
  for (let i = 0; i < count; i++) entry.lane[i] = number();
  entry.node = nodesOf.drawn = new Int32Array(count);
  if (whole) nodesOf.whole = new Int32Array(count);
  entry.guess = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    const k = number();
    nodesOf.drawn[i] = stacks[k];
    if (whole) nodesOf.whole[i] = wholeStacks[k];
    entry.guess[i] = guessed[k];
  }
  entry.weight = new Float64Array(count);
  for (let i = 0; i < count; i++) entry.weight[i] = timed ? number() * 1000 : number();
  firstEntry = new Int32Array(cells + 1);
  for (let i = 0, cell = 0; cell <= cells; cell++) {
    while (i < count && entry.cell[i] < cell) i++;
    firstEntry[cell] = i;
  }
}
