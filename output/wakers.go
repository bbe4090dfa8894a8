package output

import "goprof/profile"

// noWaker are samples without a wait that somebody ended.
const noWaker = "[no waker]"

// wakerPath is what is known of a waker, from the wait up to a node of its stack (profile/waker.go).
type wakerPath struct {
	by     int32 // label of the frame that separates it from the wait; -1: the stack has not come to it
	java   int32 // of the topmost Java method in which threads do not just wait or wake others; -1: none
	any    int32 // of the topmost frame, -1: none
	plain  int32 // of the topmost Java method
	thread int32 // of its thread, -1: it is not known
}

// NewWakers sums a tree up by what ended the waits: the thread, and the topmost Java method of its stack.
func NewWakers(t *Tree, top int) *Report {
	at := make([]wakerPath, len(t.Nodes))
	at[0] = wakerPath{-1, -1, -1, -1, -1}
	sums := map[string]int64{}
	for n := 1; n < len(t.Nodes); n++ {
		node := &t.Nodes[n]
		at[n] = at[node.Parent]
		at[n].above(t, node.Name)
		if node.Self > 0 {
			sums[at[n].name(t)] += node.Self
		}
	}
	var table []ReportRow
	for name, n := range sums {
		table = append(table, ReportRow{Name: name, Self: n, Total: n})
	}
	return newReport(t, ByWaker, table, t.Total, top)
}

// above goes up to one more frame. The leaf of a waker's stack comes first.
func (w *wakerPath) above(t *Tree, label int32) {
	l := t.Labels[label]
	switch {
	case w.by < 0:
		if l.Kind == LabelGap && profile.IsWaker(l.Text) {
			w.by = label
		}
		return
	case l.Kind == LabelThread:
		w.thread = label
	case w.any < 0 && l.Kind != LabelTruncated && !waitsIn(l):
		w.any = label
	}
	if l.Kind.Java() && w.plain < 0 {
		w.plain = label
	}
	if l.Kind.Java() && w.java < 0 && !waitsIn(l) {
		w.java = label
	}
}

func (w *wakerPath) name(t *Tree) string {
	switch {
	case w.by < 0:
		return noWaker
	case w.thread < 0:
		return t.Labels[w.by].Text
	}
	for _, label := range []int32{w.java, w.plain, w.any} {
		if label >= 0 {
			return t.Labels[w.thread].Text + " " + t.Labels[label].Text
		}
	}
	return t.Labels[w.thread].Text
}
