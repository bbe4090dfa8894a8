package heap

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"goprof/profile"
	"goprof/vmstructs"
)

const (
	// drawnObjects is the number of objects of a class that are drawn. If at least leastNewer objects are newer, only
	// newer ones are drawn.
	drawnObjects, leastNewer = 4096, 32
	// shownWays is the number of ways to a root that are shown for a class, and the number of ways without a root.
	shownWays = 100
	// A sample is drawn up to holderTries times more, if the collector has moved more than mostMoved of it.
	holderTries, mostMoved = 3, 0.3
	// Young objects that were not examined are reported if they are at least leastLeftOut of the class.
	leastLeftOut = 0.01
)

var ErrNoObjects = errors.New("no object of that class was met")

type Span struct{ Start, Top uint64 }

// Tenured lists the memory of objects that are not young.
func (r *Reader) Tenured() (spans []Span) {
	areas, _, err := r.heap.Areas()
	if err != nil {
		return nil
	}
	for _, a := range areas {
		if a.Part != vmstructs.YoungPart {
			spans = append(spans, Span{a.Start, a.Top})
		}
	}
	return spans
}

// Holders finds out what holds the objects of some classes. It reads the heap once to draw random objects, and once
// more for each step from an object to its holder. The bounds of the options apply to each of these readings. known is
// an earlier result of Tenured, or nil. If a class has enough objects outside of known, only those are drawn.
func (r *Reader) Holders(opt Options, classes []string, known []Span) (*profile.HeapHeld, error) {
	opt = opt.usual()
	var res *profile.HeapHeld
	for try := range uint64(holderTries) {
		opt.Seed += try
		h, moved, err := r.holders(opt, classes, known)
		if err != nil && res == nil {
			return nil, err
		} else if err != nil {
			break
		}
		if res = h; moved < mostMoved {
			break
		}
	}
	return res, nil
}

// holders draws objects of the classes, and looks for their holders. moved is the share of the objects that moved
// during the search.
func (r *Reader) holders(opt Options, classes []string, known []Span) (h *profile.HeapHeld, moved float64, err error) {
	d := &drawing{want: classes, known: known, seed: opt.Seed,
		of: make([][drawnGroups]lottery, len(classes))}
	read, err := r.read(opt, d.met)
	if err != nil {
		return nil, 0, err
	}
	samples, any := make([]sample, len(classes)), false
	for i := range classes {
		samples[i] = d.sample(i)
		samples[i].whole = !read.Sampled()
		if part := d.leftOut(i); part >= leastLeftOut {
			read.Notes = append(read.Notes, percent(part)+" of the bytes of "+classes[i]+
				" are young objects: goprof looked only at older ones, and the shares are of these")
		}
		any = any || len(samples[i].list) > 0
	}
	if !any {
		return nil, 0, ErrNoObjects
	}
	t, err := readHeldClasses(r.heap)
	if err != nil {
		return nil, 0, err
	}
	var c *climb
	for range holderTries { // ways that could not be proven are searched again
		until := time.Now().Add(opt.Time)
		c = newClimb(t, opt, rand.New(rand.NewPCG(opt.Seed, 1)), func() bool { return !opt.All && time.Now().After(until) })
		if left := c.find(samples); left == 0 || c.cancelled() {
			break
		}
	}
	h = &profile.HeapHeld{At: read.At, Searched: c.part, Leaks: []*profile.HeapLeak{}, Notes: read.Notes}
	for i := range samples {
		one, lost := c.result(&samples[i])
		one.Class, moved = classes[i], max(moved, lost)
		h.Holders = append(h.Holders, one)
	}
	if c.part < 1 {
		h.Notes = append(h.Notes, "only a part of the heap was looked through for references ("+percent(c.part)+
			" at least): a share says what was found there, and may be as large as \"at most\" says")
	}
	h.Notes = append(h.Notes, c.cut...)
	if t.lost > 0 {
		h.Notes = append(h.Notes, "some classes could not be read: what they hold is not known")
	}
	return h, moved, nil
}

type drawn struct {
	addr, klass uint64
	bytes, rank float64
	unit        int
	way         way
}

// The groups of objects to draw from, in this order: those outside of the known spans, all that are not young, the
// young ones.
const (
	newer = iota
	stayed
	young
	drawnGroups
)

// drawing draws objects of some classes while the heap is read.
type drawing struct {
	want  []string
	known []Span
	seed  uint64
	rows  []int32 // by ObjectClass.Sum: the index in want plus 1; 0: not known yet, -1: none
	of    [][drawnGroups]lottery
}

// lottery has the objects with the highest ranks so far. Objects with a rank below floor are not drawn.
type lottery struct {
	list  []drawn
	floor float64
}

// met gives an object of a wanted class a random rank. So the chance of an object is in proportion to its bytes. The
// method is priority sampling (Duffield, Lund, Thorup: Priority sampling for estimation of arbitrary subset sums).
func (d *drawing) met(o *vmstructs.Object, part vmstructs.HeapPart, unit int) {
	for int(o.Class.Sum) >= len(d.rows) {
		d.rows = append(d.rows, 0)
	}
	row := &d.rows[o.Class.Sum]
	if *row == 0 {
		if *row = int32(slices.Index(d.want, o.Class.Name)) + 1; *row == 0 {
			*row = -1
		}
	}
	if *row < 0 {
		return
	}
	group := stayed
	if part == vmstructs.YoungPart {
		group = young
	} else if i, found := slices.BinarySearchFunc(d.known, o.Addr, func(s Span, at uint64) int {
		return cmp.Compare(s.Start, at)
	}); d.known != nil && !found && (i == 0 || o.Addr >= d.known[i-1].Top) {
		group = newer
	}
	l, rank := &d.of[*row-1][group], float64(o.Bytes)/randomOf(o.Addr, d.seed)
	if rank < l.floor {
		return
	}
	l.list = append(l.list, drawn{addr: o.Addr, klass: o.Class.Klass, bytes: float64(o.Bytes), rank: rank, unit: unit})
	if len(l.list) > 4*drawnObjects {
		l.list, l.floor = cut(l.list)
	}
}

// randomOf returns a pseudorandom number above 0 and up to 1 for an object. A second call for the object returns the
// same number (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
func randomOf(addr, seed uint64) float64 {
	z := addr + seed*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11+1) / (1 << 53)
}

// cut keeps the objects with the highest ranks, each once. next is the rank of the best object that is dropped.
func cut(list []drawn) (left []drawn, next float64) {
	sort.Slice(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return a.rank > b.rank || a.rank == b.rank && a.addr < b.addr
	})
	seen := map[uint64]bool{}
	list = slices.DeleteFunc(list, func(d drawn) bool {
		twice := seen[d.addr]
		seen[d.addr] = true
		return twice
	})
	if len(list) > drawnObjects+1 {
		list = list[:drawnObjects+1]
	}
	if len(list) > drawnObjects {
		next = list[drawnObjects].rank
	}
	return list, next
}

// sample has the drawn objects of one class. An object stands for its own bytes, or for least bytes if that is more.
type sample struct {
	list         []drawn
	least, part  float64 // part: the share of the class's bytes from which objects were drawn
	newer, whole bool    // whole: the heap was read as a whole
}

func (d *drawing) sample(class int) (s sample) {
	of := &d.of[class]
	switch s.part = 1; {
	case len(of[newer].list) >= leastNewer:
		s.list, s.newer, s.part = of[newer].list, true, of[newer].bytes()/(of[newer].bytes()+of[stayed].bytes())
	case len(of[newer].list)+len(of[stayed].list) > 0:
		s.list = append(of[newer].list, of[stayed].list...)
	default:
		s.list = of[young].list
	}
	s.list, s.least = cut(s.list)
	s.list = s.list[:min(len(s.list), drawnObjects)]
	return s
}

// leftOut returns the share of a class's bytes in young objects that were not drawn because there were older ones.
func (d *drawing) leftOut(class int) float64 {
	of := &d.of[class]
	old, fresh := of[stayed].bytes()+of[newer].bytes(), of[young].bytes()
	if old == 0 || fresh == 0 {
		return 0
	}
	return fresh / (old + fresh)
}

// bytes estimates the sum over all objects that could be drawn.
func (l *lottery) bytes() (sum float64) {
	list, least := cut(slices.Clone(l.list))
	for _, d := range list[:min(len(list), drawnObjects)] {
		sum += max(d.bytes, least)
	}
	return sum
}

// rowKey distinguishes ways by the first reference, and by the root or the reason why there is no root.
type rowKey struct {
	first, last profile.HeapLink
	lacks       string
}

// tallied is a row of the result to which objects are added.
type tallied struct {
	row     *profile.HeapHolder
	weight  float64
	roots   map[uint64]bool
	paths   map[string]float64
	best    float64
	members []int
}

// result adds up the ways of a sample. moved is the share of objects whose holders are not known because objects moved.
func (c *climb) result(s *sample) (h *profile.HeapHolders, moved float64) {
	h = &profile.HeapHolders{Looked: len(s.list), Newer: s.newer, Drawn: s.part, Rows: []*profile.HeapHolder{}}
	rows, all := map[rowKey]*tallied{}, 0.0
	for i := range s.list {
		w := &s.list[i].way
		weight := max(s.list[i].bytes, s.least)
		if all += weight; w.lacks == profile.HolderUncertain {
			moved += weight
		}
		key := rowKey{lacks: w.lacks}
		if n := len(w.links); n > 0 {
			key.first, key.last = w.links[0], w.links[n-1]
			key.first.Times, key.last.Times = 0, 0
		}
		r := rows[key]
		if r == nil {
			r = &tallied{row: &profile.HeapHolder{Missing: w.lacks}, roots: map[uint64]bool{}, paths: map[string]float64{}}
			rows[key] = r
		}
		r.add(w, weight, i)
	}
	open := 0.0
	for _, r := range rows {
		r.row.Share = r.weight / all
		r.row.Error = c.errorOf(s, r, all)
		if c.open(r.row) {
			open += r.row.Share
		}
		h.Rows = append(h.Rows, r.row)
	}
	for _, r := range rows {
		if r.row.Missing == "" {
			r.row.Roots = len(r.roots)
			if open > 0 { // the root may hold all objects with unknown holders
				r.row.Most = min(1, r.row.Share+r.row.Error+open)
			}
		}
	}
	slices.SortFunc(h.Rows, func(a, b *profile.HeapHolder) int {
		return cmp.Or(cmp.Compare(a.Missing, b.Missing), cmp.Compare(b.Share, a.Share), cmp.Compare(pathText(a.Path),
			pathText(b.Path)))
	})
	h.Rows, h.Rest = cutRows(h.Rows)
	return h, moved / max(all, 1)
}

// open reports whether the holders of a row's objects are unknown. If the whole heap was searched, an object without a
// holder is garbage, and its row is not open.
func (c *climb) open(row *profile.HeapHolder) bool {
	switch row.Missing {
	case profile.HolderUncertain, profile.HolderFar:
		return true
	case "":
		return c.part < 1 && row.Path[len(row.Path)-1].Kind == profile.LinkStack
	}
	return c.part < 1 || len(c.cut) > 0 || c.t.lost > 0
}

// cutRows returns the largest rows of each kind, and the sum of the others. The row of the objects without a path is
// always kept. So shares and rest add up.
func cutRows(rows []*profile.HeapHolder) (left []*profile.HeapHolder, rest float64) {
	kinds := map[string]int{}
	left = slices.DeleteFunc(rows, func(row *profile.HeapHolder) bool {
		kinds[row.Missing]++
		if kinds[row.Missing] <= shownWays {
			return false
		}
		rest += row.Share
		return true
	})
	return left, rest
}

// add adds an object. The row shows the path that has most bytes.
func (r *tallied) add(w *way, weight float64, member int) {
	r.weight += weight
	r.roots[w.root] = true
	r.members = append(r.members, member)
	text := pathText(w.links)
	if r.paths[text] += weight; r.paths[text] > r.best || r.row.Path == nil {
		r.best, r.row.Path = r.paths[text], append([]profile.HeapLink{}, w.links...)
	}
}

// pathText returns a text for a path. Paths that differ only in the number of times that a reference is repeated have
// the same text.
func pathText(links []profile.HeapLink) string {
	var b strings.Builder
	for _, l := range links {
		b.WriteString(l.Kind + l.Class + "." + l.Field + l.Thread + "\n")
	}
	return b.String()
}

// errorOf returns the error of a share. The share is a ratio of sums over the objects, or over the pieces of the heap
// that hold them. The error is 0 if all objects were examined.
func (c *climb) errorOf(s *sample, r *tallied, all float64) float64 {
	if s.least == 0 && s.whole {
		return 0
	}
	in := map[int]bool{}
	for _, i := range r.members {
		in[i] = true
	}
	share, sums := r.weight/all, map[int]float64{}
	for i := range s.list {
		x, unit := 0.0, s.list[i].unit
		if in[i] {
			x = 1
		}
		if s.whole {
			unit = i
		}
		sums[unit] += max(s.list[i].bytes, s.least) * (x - share)
	}
	squares := 0.0
	for _, sum := range sums {
		squares += sum * sum
	}
	return min(1, profile.Z95(len(sums))*math.Sqrt(squares)/all)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }
