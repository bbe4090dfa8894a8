package heap

import (
	"cmp"
	"slices"
	"time"

	"goprof/profile"
	"goprof/vmstructs"
)

func (x *reading) result() *profile.Heap {
	t := x.tally
	h := &profile.Heap{Took: time.Since(x.began), Collector: x.heap.CollectorName(),
		Capacity: x.heap.Capacity(), Copied: x.copied, Largest: t.biggest, Notes: x.notes}
	if x.unknown != "" {
		h.Notes = append(h.Notes, x.unknown)
	}
	if x.expired && x.opt.All {
		h.Notes = append(h.Notes, "the reading was ended early: what was not read is missing")
	}
	for i := range t.parts {
		p := &t.parts[i]
		p.clump = t.clump(i)
		if p.used == 0 && p.units == 0 {
			continue
		}
		used, size := p.used-min(p.used, p.scale(p.unread.Free)), uint64(p.size)
		part := profile.HeapPart{Name: vmstructs.HeapPart(i).String(), Used: used,
			Seen: min(size-min(size, p.unread.Free)+p.unread.Buffers, used),
			Unread: profile.HeapUnread{Buffers: p.unread.Buffers, Making: p.scale(p.unread.Making),
				Moving: p.scale(p.unread.Moving), Unknown: p.scale(p.unread.Unknown), Memory: p.scale(p.unread.Memory)}}
		if p.sampled {
			part.Units, part.Unread.Buffers = p.units, p.free
			part.Moved, part.Unseen = p.moved > 0, p.unseen()
		}
		if vmstructs.HeapPart(i) == vmstructs.OldPart {
			part.Max = x.heap.OldMax()
		}
		switch {
		case part.Seen > 0:
		case p.moved > 0:
			h.Notes = append(h.Notes, "nothing of "+part.Name+" could be read, so its classes are missing: each piece was "+
				"collected while it was read")
		default:
			h.Notes = append(h.Notes, "nothing of "+part.Name+" was read, so its classes are missing: "+
				"--all takes the time that this needs")
		}
		h.Parts = append(h.Parts, part)
	}
	loaders := map[uint64]string{}
	for _, r := range t.rows {
		if r.name != "" {
			if c := t.class(r); c.Objects > 0 {
				if r.klass != 0 {
					loaders[r.klass] = x.heap.LoaderOf(r.klass)
				}
				c.Loader = loaders[r.klass]
				h.Classes = append(h.Classes, c)
			}
		}
	}
	slices.SortFunc(h.Classes, func(a, b *profile.HeapClass) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Loader, b.Loader))
	})
	return h
}

// scale estimates the value of the whole part from a sum over the units that were read.
func (p *partSums) scale(bytes uint64) uint64 {
	amount, _ := p.estimate(float64(bytes), 0, 0)
	return uint64(amount)
}

// class adds up one class over all parts.
func (t *tally) class(r *row) *profile.HeapClass {
	c := &profile.HeapClass{Name: r.name, Filler: r.filler, Parts: map[string]profile.HeapAmount{}}
	for i := range r.parts {
		if r.parts[i].objects > 0 {
			a := t.parts[i].amount(&r.parts[i])
			c.Parts[vmstructs.HeapPart(i).String()] = a
			c.HeapAmount = c.HeapAmount.Plus(a)
		}
	}
	if c.Objects == 0 {
		return c
	}
	size := c.Bytes / c.Objects
	for i := range r.parts {
		if n := t.parts[i].unseen(); n > 0 && r.parts[i].objects == 0 {
			a := profile.HeapAmount{ObjectsError: n,
				BytesError: min(n*size, float64(t.parts[i].used)-min(t.parts[i].size, float64(t.parts[i].used)))}
			c.Parts[vmstructs.HeapPart(i).String()] = a
			c.HeapAmount = c.HeapAmount.Plus(a)
		}
	}
	if r.lengths == nil {
		return c
	}
	for bits, k := range r.lengths {
		if k == 0 {
			continue
		}
		l := profile.HeapLengths{From: 1 << bits >> 1, To: 1<<bits - 1, Parts: map[string]profile.HeapAmount{}}
		for i := range t.rows[k].parts {
			if t.rows[k].parts[i].objects > 0 {
				a := t.parts[i].amount(&t.rows[k].parts[i])
				l.Parts[vmstructs.HeapPart(i).String()] = a
				l.HeapAmount = l.HeapAmount.Plus(a)
			}
		}
		if l.Objects > 0 {
			c.Lengths = append(c.Lengths, l)
		}
	}
	return c
}
