package heap

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"goprof/profile"
	"goprof/vmstructs"
)

const (
	// maxClasses bounds the classes, maxRows the rows of classes and of arrays by length, and maxText the bytes of the
	// names. All other classes count as one.
	maxClasses = 1 << 16
	maxRows    = 1 << 17
	maxText    = 16 << 20
	// lengthClasses is the number of rows for the arrays of a class. A row has the arrays whose lengths have the same
	// number of bits.
	lengthClasses = 33
	// largest is the number of largest arrays that are kept.
	largest = 20
	others  = "[other classes]"
)

// row counts the objects of a class in each part, or only its arrays whose lengths have the same number of bits.
type row struct {
	klass   uint64
	name    string
	filler  bool
	lengths *[lengthClasses]int32 // of an array's class: the row for each number of bits of the length; 0: none
	parts   [vmstructs.HeapParts]sums
	bytes   uint64 // in the present unit
	objects uint64
}

// sums are sums over the units of a part, for a ratio estimate.
type sums struct {
	bytes, objects             float64
	bytes2, objects2           float64 // of the squares
	bytesBySize, objectsBySize float64 // of the products with the units' sizes
}

// tally counts objects unit by unit. forget takes back a unit that has changed during the reading.
type tally struct {
	rows    []*row
	byKlass map[uint64]int
	text    int // bytes of the names
	touched []int
	parts   [vmstructs.HeapParts]partSums
	part    vmstructs.HeapPart // of the present unit

	biggest []*profile.HeapArray // sorted, the largest first
	met     []*profile.HeapArray // in the present unit
}

// partSums are sums over the units of a part.
type partSums struct {
	units       int
	size, size2 float64 // without free memory
	unread      vmstructs.Unread
	sampled     bool
	clump       float64 // see clump
	lost        int     // pieces of regions that a collection has changed during the reading
	moved       float64 // the bytes of size that a collection may have moved, so that they were read twice or never
	used        uint64
	free        uint64 // the bytes of used that hold no objects
}

func newTally() *tally {
	return &tally{rows: []*row{{name: others}}, byKlass: map[uint64]int{}}
}

// reset removes everything that was counted of a part.
func (t *tally) reset(part vmstructs.HeapPart) {
	for _, r := range t.rows {
		r.parts[part] = sums{}
	}
	t.parts[part] = partSums{}
	name := part.String()
	t.biggest = slices.DeleteFunc(t.biggest, func(a *profile.HeapArray) bool { return a.Part == name })
}

func (t *tally) add(o *vmstructs.Object) {
	i := int(o.Class.Sum) - 1
	if i < 0 {
		i = t.rowOf(o.Class)
	}
	r := t.rows[i]
	t.count(i, r, o.Bytes)
	if o.Length < 0 || i == 0 {
		return
	}
	if k := t.lengthRow(r, bits.Len64(uint64(o.Length))); k != 0 {
		t.count(k, t.rows[k], o.Bytes)
	}
	if !r.filler && (len(t.biggest) < largest || o.Bytes > t.biggest[len(t.biggest)-1].Bytes) && len(t.met) < 1<<12 {
		t.met = append(t.met, &profile.HeapArray{Address: o.Addr, Class: r.name, Length: uint64(o.Length), Bytes: o.Bytes,
			Part: t.part.String()})
	}
}

// lengthRow returns the row of a class's arrays with lengths of n bits. It returns 0 if there are too many rows.
func (t *tally) lengthRow(r *row, n int) int {
	if r.lengths == nil {
		r.lengths = new([lengthClasses]int32)
	}
	if r.lengths[n] == 0 && len(t.rows) < maxRows {
		r.lengths[n] = int32(len(t.rows))
		t.rows = append(t.rows, &row{})
	}
	return int(r.lengths[n])
}

func (t *tally) count(i int, r *row, bytes uint64) {
	if r.objects == 0 {
		t.touched = append(t.touched, i)
	}
	r.objects++
	r.bytes += bytes
}

// rowOf returns the row of a class. It adds one if needed. If there are too many classes, it returns row 0.
func (t *tally) rowOf(class *vmstructs.ObjectClass) int {
	i, known := t.byKlass[class.Klass]
	if known && t.rows[i].name != class.Name { // another class has that address now
		known = false
	}
	if !known {
		i = 0
		if len(t.byKlass) < maxClasses && len(t.rows) < maxRows && t.text+len(class.Name) <= maxText {
			i = len(t.rows)
			t.rows = append(t.rows, &row{klass: class.Klass, name: class.Name, filler: class.Filler})
			t.byKlass[class.Klass] = i
			t.text += len(class.Name)
		}
	}
	class.Sum = uint64(i) + 1
	return i
}

// commit ends a unit of size bytes, and counts it.
func (t *tally) commit(size uint64, unread vmstructs.Unread) {
	x := float64(size - min(size, unread.Buffers))
	p := &t.parts[t.part]
	p.units++
	p.size += x
	p.size2 += x * x
	p.unread.Add(unread)
	for _, i := range t.touched {
		r := t.rows[i]
		s := &r.parts[t.part]
		b, n := float64(r.bytes), float64(r.objects)
		s.bytes += b
		s.objects += n
		s.bytes2 += b * b
		s.objects2 += n * n
		s.bytesBySize += b * x
		s.objectsBySize += n * x
		r.bytes, r.objects = 0, 0
	}
	t.touched = t.touched[:0]
	t.biggest = append(t.biggest, t.met...)
	slices.SortFunc(t.biggest, func(a, b *profile.HeapArray) int { return cmp.Compare(b.Bytes, a.Bytes) })
	t.biggest = t.biggest[:min(len(t.biggest), largest)]
	t.met = t.met[:0]
}

// forget ends a unit, and removes its counts.
func (t *tally) forget() {
	for _, i := range t.touched {
		t.rows[i].bytes, t.rows[i].objects = 0, 0
	}
	t.touched, t.met = t.touched[:0], t.met[:0]
}

// estimate estimates an amount in the whole part. y is its sum over the units that were read, y2 the sum of the
// squares, and yx the sum of the products with the units' sizes.
func (p *partSums) estimate(y, y2, yx float64) (amount, err float64) {
	if !p.sampled {
		return y, 0
	}
	if p.size == 0 {
		return 0, 0
	}
	n, used := float64(p.units), float64(p.used-min(p.used, p.free))
	ratio := y / p.size
	amount = ratio * used
	if p.units < 2 {
		return amount, amount
	}
	// Cochran, Sampling Techniques, 6.4: the variance of a ratio, with the correction for a finite population.
	spread := max(y2-2*ratio*yx+ratio*ratio*p.size2, 0) / (n - 1)
	mean := p.size / n
	left := max(1-p.size/used, min(1, p.moved/p.size), 0)
	err = profile.Z95(p.units) * used * math.Sqrt(left*spread/n) / mean
	if amount == 0 {
		return 0, 0
	}
	// The contents of pieces are skewed: most samples have too few full pieces, and too small a spread. So the interval is
	// Wilson's score interval for the number of clumps that has this relative error. Lost pieces may have had nothing.
	e := err/amount + float64(p.lost)/float64(p.units+p.lost)
	return amount, amount * (e*e/2 + e*math.Sqrt(1+e*e/4))
}

func (p *partSums) amount(s *sums) (a profile.HeapAmount) {
	a.Bytes, a.BytesError = p.estimate(s.bytes, s.bytes2, s.bytesBySize)
	a.Objects, a.ObjectsError = p.estimate(s.objects, s.objects2, s.objectsBySize)
	return a
}

// clump returns how many objects of a rare class lie side by side, on average. A class is rare if it was found in one
// piece only. Classes that were not found are assumed to be like these.
func (t *tally) clump(part int) float64 {
	classes, objects := 0.0, 0.0
	for _, r := range t.rows {
		if s := &r.parts[part]; r.name != "" && s.objects > 0 && s.objects2 == s.objects*s.objects {
			classes, objects = classes+1, objects+s.objects
		}
	}
	return objects / max(classes, 1)
}

// unseen returns the largest likely number of objects of a class that the sample missed. It is right in 95 of 100
// cases: a sample misses that many separate clumps in 5 of 100 cases (the rule of three).
func (p *partSums) unseen() float64 {
	used := float64(p.used - min(p.used, p.free))
	if !p.sampled || p.size == 0 || used <= 0 {
		return 0
	}
	looked := p.size / used
	if p.moved > 0 {
		looked = min(looked, movedShare)
	}
	if looked >= 1 {
		return 0
	}
	return math.Log(missedBy) / math.Log1p(-looked) * max(p.clump, 1)
}

const (
	missedBy = 0.05
	// movedShare is the largest share that is reported as read, of a part that a collection has moved during the reading.
	movedShare = 0.95
)
