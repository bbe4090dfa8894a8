package output

import "goprof/profile"

// noWaker is the row of samples that have no waker.
const noWaker = "[no waker]"

// wakerPath is what is known about a waker, from the wait up to a node of its stack (profile/waker.go), as labels. -1:
// none.
type wakerPath struct {
	by     int32 // the frame between the wait and the waker's stack
	java   int32 // the topmost Java method that does more than wait or wake others
	thread int32
	// before is the node in which the path of the previous waker of the chain ends. 0: this is the first waker.
	before int32
	length int // of the chain so far
}

// mostChain bounds the wakers of a chain that are named. goprof writes 16 at most.
const mostChain = 64

// NewWakers sums up a tree by what ended the waits: the thread, and the topmost Java method of its stack. by is ByWaker
// or ByChain.
func NewWakers(t *Tree, by string) *Report {
	at := make([]wakerPath, len(t.Nodes))
	at[0] = wakerPath{by: -1, java: -1, thread: -1}
	sums := map[string]int64{}
	for n := 1; n < len(t.Nodes); n++ {
		node := &t.Nodes[n]
		at[n] = at[node.Parent]
		at[n].above(t, node.Name, node.Parent)
		if node.Self > 0 {
			sums[at[n].chain(t, at, by == ByWaker)] += node.Self
		}
	}
	var table []ReportRow
	for name, n := range sums {
		table = append(table, ReportRow{Name: name, Self: n, Total: n})
	}
	return newReport(t, by, table, t.Total)
}

// above adds the frame above the node parent to the path. The leaf of a waker's stack comes first.
func (w *wakerPath) above(t *Tree, label, parent int32) {
	switch l := t.Labels[label]; {
	case l.Kind == LabelGap && profile.IsWaker(l.Text):
		if w.length == mostChain {
			return
		}
		if w.by >= 0 {
			w.before = parent
		}
		w.length++
		w.by, w.java, w.thread = label, -1, -1
	case w.by < 0:
	case l.Kind == LabelThread:
		w.thread = label
	case w.java < 0 && l.Kind.Java() && !waitsIn(l):
		w.java = label
	}
}

// chain names the wakers of a wait. first: it names only the first waker.
func (w *wakerPath) chain(t *Tree, at []wakerPath, first bool) string {
	switch {
	case w.before == 0:
		return w.name(t)
	case first:
		return at[w.before].chain(t, at, true)
	}
	return at[w.before].chain(t, at, false) + " < " + w.name(t)
}

func (w *wakerPath) name(t *Tree) string {
	switch {
	case w.by < 0:
		return noWaker
	case w.thread < 0:
		return t.Labels[w.by].Text
	case w.java < 0:
		return t.Labels[w.thread].Text
	}
	return t.Labels[w.thread].Text + " " + t.Labels[w.java].Text
}
