package heap

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"goprof/profile"
)

const (
	// LeakClasses is how many growing classes are examined.
	LeakClasses = 8
	// leastLeak is the smallest share of all growth for a leak. leastOfLeak is the smallest share of a leak for a class.
	leastLeak, leastOfLeak = 0.05, 0.005
)

// Growers returns the classes that grow the fastest.
func Growers(g *profile.HeapGrowth) (names []string) {
	for _, c := range g.Classes[:min(len(g.Classes), LeakClasses)] {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// FindLeaks joins the classes that grow (g) with the roots that hold them (h). A class is a leak if it certainly grows
// and one root certainly holds it: a chain to a root proves that its objects are not garbage. If a part of the heap was
// not searched, a missing chain proves nothing. Then a leak's rate counts only the objects with a chain, and its weight
// assumes that the same root holds the others. If the JVM counts collections, the growing objects must have survived
// one.
//
// The drawn objects may include older ones, if the collector has moved them or there are too few new ones. A root is
// left out if it may hold only older objects.
func FindLeaks(h *profile.HeapHeld, g *profile.HeapGrowth) {
	h.Growth, h.Leaks = g, []*profile.HeapLeak{}
	if !g.Collected && !g.Uncounted && len(g.Classes) > 0 { // a full cache looks the same: new entries replace old ones
		h.Notes = append(h.Notes, "the old generation was not collected meanwhile, so no leak can be distinguished from "+
			"objects that replace others: look for longer, past a collection")
		return
	}
	leaks, fastest := map[profile.HeapLink]*leak{}, map[*leak]float64{}
	all := 0.0
	for _, c := range g.Classes {
		all += c.Bytes.Rate
		i := slices.IndexFunc(h.Holders, func(o *profile.HeapHolders) bool { return o.Class == c.Name })
		if i < 0 {
			continue
		}
		unseen, same := 0.0, 0.0 // same: the share of the drawn objects that are no growth
		if from := c.To * h.Holders[i].Drawn; from > 0 {
			same = 1 - min(1, c.Bytes.Rate*g.Over.Seconds()/from)
		}
		for _, row := range h.Holders[i].Rows {
			if row.Missing == profile.HolderUncertain || row.Missing != "" && g.Collected && h.Searched < 1 {
				unseen += row.Share
			}
		}
		for _, row := range h.Holders[i].Rows {
			if row.Missing != "" || unseen >= 1 || row.Share <= same {
				continue
			}
			share, err := (row.Share-same)/(1-same), row.Error/(1-same)
			key := row.Path[len(row.Path)-1]
			key.Times = 0
			l := leaks[key]
			if l == nil {
				l = &leak{}
				leaks[key] = l
			}
			rate := c.Bytes.Rate * share
			l.Bytes.Rate += rate
			l.Bytes.Error = math.Hypot(l.Bytes.Error, math.Hypot(c.Bytes.Error*share, c.Bytes.Rate*err))
			l.likely, l.AtLeast = l.likely+rate/(1-unseen), l.AtLeast || unseen > 0 || same > 0
			l.parts = append(l.parts, leakPart{c.Name, rate})
			if rate > fastest[l] {
				fastest[l], l.Path, l.Roots = rate, row.Path, row.Roots
			}
		}
	}
	for _, l := range leaks {
		if !l.Bytes.Sure() || l.likely < leastLeak*all {
			continue
		}
		sort.Slice(l.parts, func(i, j int) bool {
			a, b := &l.parts[i], &l.parts[j]
			return a.rate > b.rate || a.rate == b.rate && a.class < b.class
		})
		for _, p := range l.parts {
			if p.rate >= leastOfLeak*l.Bytes.Rate && !slices.Contains(l.Classes, p.class) {
				l.Classes = append(l.Classes, p.class)
			}
		}
		h.Leaks = append(h.Leaks, &l.HeapLeak)
	}
	slices.SortFunc(h.Leaks, func(a, b *profile.HeapLeak) int { return cmp.Compare(b.Bytes.Rate, a.Bytes.Rate) })
}

// leak is a leak while its classes are added up.
type leak struct {
	profile.HeapLeak
	parts  []leakPart
	likely float64 // its rate, if the same root holds the objects with unknown holders
}

type leakPart struct {
	class string
	rate  float64
}

// AddAllocs adds the stacks that allocate a leak's classes, from a recording of allocations.
func AddAllocs(h *profile.HeapHeld, p *profile.Profile) {
	const most = 3 // stacks of a class
	type site struct {
		profile.HeapAllocSite
		text string
	}
	sites, sums := map[string][]*site{}, map[string]int64{}
	p.Each(func(frames []profile.Frame, n int64) {
		if len(frames) == 0 {
			return
		}
		class := frames[len(frames)-1].Func.Name
		s := &site{HeapAllocSite: profile.HeapAllocSite{Class: class, Bytes: n}}
		for i := len(frames) - 2; i >= 0; i-- {
			if f := &frames[i]; f.Kind.Java() {
				s.Stack, s.text = append(s.Stack, f.Func.Name), s.text+f.Func.Name+"\n"
			}
		}
		sums[class] += n
		if i := slices.IndexFunc(sites[class], func(o *site) bool { return o.text == s.text }); i >= 0 {
			sites[class][i].Bytes += n
		} else if len(sites[class]) < 1<<12 {
			sites[class] = append(sites[class], s)
		}
	})
	for _, l := range h.Leaks {
		for _, class := range l.Classes {
			of := sites[class]
			slices.SortFunc(of, func(a, b *site) int {
				return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.text, b.text))
			})
			for _, s := range of[:min(len(of), most)] {
				s.Share = float64(s.Bytes) / float64(sums[class])
				l.Allocs = append(l.Allocs, s.HeapAllocSite)
			}
		}
	}
}
