package dumps

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/naming"
)

// dumpGroup is a group of threads at the same place, in the same state.
type dumpGroup struct {
	*profile.ThreadDump // the first of them, without facts that differ between them
	all                 []*profile.ThreadDump
}

// counted is a name and the number of its threads.
type counted struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// ordered lists counts, the highest first.
func ordered(counts map[string]int) []counted {
	list := make([]counted, 0, len(counts))
	for _, name := range profile.ByCount(counts) {
		list = append(list, counted{name, counts[name]})
	}
	return list
}

// groupThreads puts threads into one group if they have the same state, methods and lines, the same reason for the end
// of the stack, and wait for the same thing. How a method was compiled may differ. Groups are ordered by the parts of a
// dump, and within each part by size, the largest first.
func groupThreads(threads []profile.ThreadDump) []*dumpGroup {
	var groups []*dumpGroup
	byKey := map[string]*dumpGroup{}
	for i := range threads {
		t := &threads[i]
		key := groupKey(t)
		g := byKey[key]
		if g == nil {
			g = &dumpGroup{ThreadDump: t}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.all = append(g.all, t)
	}
	for _, g := range groups {
		g.mergeLocks()
	}
	slices.SortStableFunc(groups, func(a, b *dumpGroup) int {
		return cmp.Or(cmp.Compare(groupPart(a.ThreadDump), groupPart(b.ThreadDump)), cmp.Compare(len(b.all), len(a.all)))
	})
	return groups
}

// groupPart returns the part of a dump for a thread's group. Groups have no separate part for the main thread.
func groupPart(t *profile.ThreadDump) profile.DumpPart { return max(t.Part(), profile.Application) }

func groupKey(t *profile.ThreadDump) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %q %q %d %t %d", groupPart(t), t.State, t.Err, t.Stack.Truncated, t.Stack.Mounted, t.Stack.Carrier)
	if want := t.WaitsFor; want != nil {
		fmt.Fprintf(&b, " %d %q %d %d %q", want.How, want.Class, want.Owner.TID, want.Owner.Virtual, want.Owner.Name)
		if want.How == profile.ToEnter || want.Owner != (profile.ThreadRef{}) {
			fmt.Fprintf(&b, " %x", want.ID)
		}
	}
	if t.Unconfirmed {
		b.WriteString(" ?")
	}
	for i := range t.Holds {
		fmt.Fprintf(&b, " %d %q", t.Holds[i].Frame, t.Holds[i].Class)
	}
	for i := range t.Stack.Frames {
		f := &t.Stack.Frames[i]
		if f.Func != nil {
			fmt.Fprintf(&b, "\n%q %q", f.Func.Name, f.Func.Module)
		}
		if f.Kind.Java() {
			fmt.Fprintf(&b, " %d %d", f.Line, f.BCI)
		}
	}
	return b.String()
}

// mergeLocks removes the identities of locks that differ between the threads.
func (g *dumpGroup) mergeLocks() {
	if len(g.all) == 1 || g.WaitsFor == nil && len(g.Holds) == 0 {
		return
	}
	first := *g.ThreadDump
	g.ThreadDump = &first
	if first.WaitsFor != nil {
		first.WaitsFor = new(*first.WaitsFor)
	}
	first.Holds = slices.Clone(first.Holds)
	for _, t := range g.all[1:] {
		if first.WaitsFor != nil && t.WaitsFor.ID != first.WaitsFor.ID {
			first.WaitsFor.ID = 0
		}
		for i := range first.Holds {
			if t.Holds[i].ID != first.Holds[i].ID {
				first.Holds[i].ID = 0
			}
		}
	}
}

// names counts the threads by name, with one name for each pool.
func (g *dumpGroup) names() []counted {
	names := map[string]int{}
	for _, t := range g.all {
		names[naming.Pool(t.Name)]++
	}
	return ordered(names)
}

func (g *dumpGroup) tids() (tids []int) {
	for _, t := range g.all {
		if t.TID != 0 {
			tids = append(tids, t.TID)
		}
	}
	return tids
}

func (g *dumpGroup) cpu() (sum time.Duration) {
	for _, t := range g.all {
		sum += t.CPU
	}
	return sum
}

func (g *dumpGroup) daemons() bool {
	return !slices.ContainsFunc(g.all, func(t *profile.ThreadDump) bool { return !t.Daemon })
}

const (
	// maxGroupNames and maxGroupTIDs bound how much of a group is shown in text. JSON has everything.
	maxGroupNames = 8
	maxGroupTIDs  = 16
)

// groups writes each group once:
//
//	12 threads RUNNABLE daemon cpu=1.2s: "pool-1-thread-*" (10), "worker", "main"
//	  tid=4713 4714 ...
func (w *dumpWriter) groups(threads []profile.ThreadDump) {
	for _, g := range groupThreads(threads) {
		w.begin(groupPart(g.ThreadDump))
		if len(g.all) == 1 {
			w.title(g.ThreadDump)
		} else {
			w.groupTitle(g)
		}
		w.thread(g.ThreadDump)
	}
}

func (w *dumpWriter) groupTitle(g *dumpGroup) {
	fmt.Fprintf(w, "%d threads", len(g.all))
	names := g.names()
	separator := " "
	for i, n := range names {
		if i == maxGroupNames {
			fmt.Fprintf(w, ", %d other names", len(names)-i)
			break
		}
		fmt.Fprintf(w, "%s\"%s\"", separator, output.CleanName(n.Name))
		if n.Count > 1 {
			fmt.Fprintf(w, " (%d)", n.Count)
		}
		separator = ", "
	}
	w.facts(g.State, g.daemons(), g.cpu())
	tids := g.tids()
	if len(tids) == 0 {
		return
	}
	w.WriteString("  tids")
	for i, tid := range tids {
		if i == maxGroupTIDs {
			fmt.Fprintf(w, " and %d more", len(tids)-i)
			break
		}
		fmt.Fprintf(w, " %d", tid)
	}
	w.WriteByte('\n')
}
