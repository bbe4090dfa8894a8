// What the page was given, unpacked into flat arrays. See encode.go for the form it comes in.

performance.mark('goprof-begin');

const page = JSON.parse(document.getElementById('data').textContent);
const names = unpackNames(page.names);
const kindOf = id => page.kinds.charCodeAt(id) - 65;

const cells = page.rows * page.columns, laneCount = page.lanes.length;
const timed = page.unit === 'time' || page.unit === 'cpu'; // in ns, once it is read

// Filled in by load.
let tree = null; // of all samples
const entry = {count: page.entries, cell: null, cells: null, lane: null, node: null, weight: null};
let firstEntry = null; // of a cell; [cells] is the end
let longest = 1; // cells of one entry

async function inflate(base64) {
  const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function load() {
  const [nodes, samples] = await Promise.all([inflate(page.nodes), inflate(page.samples)]);
  tree = unpackTree(page.count, page.rootSelf, nodes);
  const number = numbersOf(samples), {count} = entry;
  const stacks = new Int32Array(page.stacks);
  for (let i = 0; i < page.stacks; i++) stacks[i] = number();
  entry.cell = new Int32Array(count);
  for (let i = 0, cell = 0; i < count; i++) entry.cell[i] = cell += number();
  if (page.spans) {
    entry.cells = new Int32Array(count);
    for (let i = 0; i < count; i++) longest = Math.max(longest, entry.cells[i] = number() + 1);
  }
  entry.lane = new Int32Array(count);
  for (let i = 0; i < count; i++) entry.lane[i] = number();
  entry.node = new Int32Array(count);
  for (let i = 0; i < count; i++) entry.node[i] = stacks[number()];
  entry.weight = new Float64Array(count);
  for (let i = 0; i < count; i++) entry.weight[i] = timed ? number() * 1000 : number();
  firstEntry = new Int32Array(cells + 1);
  for (let i = 0, cell = 0; cell <= cells; cell++) {
    while (i < count && entry.cell[i] < cell) i++;
    firstEntry[cell] = i;
  }
}
