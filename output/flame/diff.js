// A differential page: the change of each frame's share, and how much of it is noise. Go has judged the changes
// (output/diff); this file only shows the result. Folded and reversed frames were not judged, so they have no noise.

const diff = page.diff || null;

// swapped: the shape is that of the earlier recording.
let swapped = false;

const shares = (view, n) => {
  const now = view.total(n) / (view.total(view.root) || 1), other = view.was(n) / (view.was(view.root) || 1);
  return swapped ? {before: now, after: other} : {before: other, after: now};
};

// judged is the result for a frame: 0 nothing, 1 within noise, 2 significant, 3 likely, 4 more than noise within the
// recordings, 5 would be more than noise if no other frame were compared. The last two are pale.
const judged = (view, n) => (view === forward && tree === recorded ? recorded.told[n] : 0);

// swap shows the shape of the other recording.
function swap() {
  swapped = !swapped;
  for (const t of recorded.folded ? [recorded, recorded.folded] : [recorded]) {
    [t.self, t.wasSelf] = [t.wasSelf, t.self];
    [t.total, t.was] = [t.was, t.total];
    place(t);
  }
  reverse = reverseOf(tree);
}

const changeKinds = {
  more: ['more than before', 6], less: ['less', 214], fresh: ['new', 32], gone: ['gone', 268], noise: ['within noise', -1],
};

function changeOf(view, n) {
  const {before, after} = shares(view, n);
  if (judged(view, n) === 1) return 'noise';
  if (before === 0 && after > 0) return 'fresh';
  if (after === 0 && before > 0) return 'gone';
  return after > before ? 'more' : after < before ? 'less' : 'noise';
}

// changeShade returns a colour. The hue shows the direction, and the strength the points (full strength at 5).
function changeShade(kind, points, dark, pale) {
  const hue = changeKinds[kind][1];
  if (hue < 0) return dark ? '#4a4d52' : '#dcdcdc';
  const strength = Math.min(1, Math.sqrt(Math.abs(points) / 5)) * (pale ? 0.4 : 1);
  return dark ? `hsl(${hue} ${20 + 55 * strength}% ${28 + 14 * strength}%)` : `hsl(${hue} ${35 + 55 * strength}% ${88 - 28 * strength}%)`;
}

function changeColour(view, n, dark) {
  const {before, after} = shares(view, n);
  return changeShade(changeOf(view, n), 100 * (after - before), dark, judged(view, n) > 3);
}

// drawChangeLegend explains the colours of changes.
function drawChangeLegend(list, dark) {
  list.replaceChildren(...Object.entries(changeKinds).map(([kind, [text]]) => legendOf(text, changeShade(kind, 3, dark))));
  if (recorded.told.some(how => how > 3)) list.append(legendOf('pale: not proven', changeShade('more', 5, dark, true)));
}

// changeText returns the text about a frame: shares, the change, and the change by noise alone.
function changeText(view, n) {
  const {before, after} = shares(view, n), of = p => (100 * p).toFixed(2) + '%', how = judged(view, n);
  let text = `${of(before)} \u2192 ${of(after)}, ${signed(100 * (after - before))} points`;
  if (before === 0 && after > 0) text += ', new';
  if (after === 0 && before > 0) text += ', gone';
  if (how === 2) text += ', significant';
  if (how === 3) text += ', likely';
  if (how === 4) text += ', more than noise within the recordings';
  if (how === 5) text += ', significant if it were compared alone';
  const noise = diff.usual ? 'two starts usually differ by up to' : 'noise alone gives up to';
  if (how > 0 && recorded.noise[n] > 0) text += `, ${noise} ${recorded.noise[n].toFixed(2)}`;
  let lost = 0;
  view.each(n, c => {
    const s = shares(view, c);
    if (s.after === 0 && s.before > 0) lost += s.before;
  });
  if (lost > 0 && after > 0) text += `; gone below it: ${of(lost)}`;
  return text;
}
