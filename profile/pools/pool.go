package pools

import (
	"cmp"
	"slices"

	"goprof/profile"
	"goprof/profile/naming"
)

// Pool is the threads whose names only differ by a number.
type Pool struct {
	Name    string // by naming.Pool
	Members []Member
	// Executors are the known executors of the members: one, or several whose threads have the same name.
	Executors []*profile.Executor
}

type Member struct {
	*profile.ThreadDump
	Spot
}

// Unnamed is the name of the pool of virtual threads without names.
const Unnamed = "without a name"

// Of makes pools of the threads of a dump for which ask is true, the largest first. Threads whose names are equal, or
// only differ by a number, are one pool.
func Of(threads []profile.ThreadDump, ask func(*profile.ThreadDump) bool) []*Pool {
	return grouped(threads, ask, func(t *profile.ThreadDump) string { return nameOf(t) })
}

func nameOf(t *profile.ThreadDump) string {
	return cmp.Or(naming.Pool(cmp.Or(t.Ref().Name, t.Name)), Unnamed)
}

func grouped(threads []profile.ThreadDump, ask func(*profile.ThreadDump) bool,
	key func(*profile.ThreadDump) string) []*Pool {
	byKey := map[string]*Pool{}
	var all []*Pool
	for i := range threads {
		t := &threads[i]
		if !ask(t) {
			continue
		}
		k := key(t)
		p := byKey[k]
		if p == nil {
			p = &Pool{Name: nameOf(t)}
			byKey[k] = p
			all = append(all, p)
		}
		p.Members = append(p.Members, Member{t, At(t)})
	}
	slices.SortStableFunc(all, func(a, b *Pool) int { return cmp.Compare(len(b.Members), len(a.Members)) })
	return all
}

// At returns the Spot of a thread in a dump.
func At(t *profile.ThreadDump) Spot {
	blocked := t.State == "BLOCKED" || t.State == "blocked" // a virtual thread without a carrier, at a monitor
	return Look(t.Stack.Frames, blocked || t.WaitsFor != nil && t.WaitsFor.How == profile.ToEnter)
}

// Count returns how many members do d.
func (p *Pool) Count(d Doing) (n int) {
	for i := range p.Members {
		if p.Members[i].Doing == d {
			n++
		}
	}
	return n
}
