package unwind

import "goprof/vmstructs"

// Between two places of compiled code of which it is known which methods are inlined there, the program goes a
// way through its bytecodes: out of the methods that it leaves, on in the one that both have in common, into those
// that it enters. How far a pc is on the way of machine code says how far it is on that of the bytecodes.

// leg is the part of such a way that one method is the innermost on.
type leg struct {
	scopes []vmstructs.Scope
	work   int
}

// maxLegs bounds a way: methods are seldom inlined deeper than 15.
const maxLegs = 64

// between returns the methods that run on the way from one place to another, done of left instructions behind
// the first and left before the second.
func (w *Walker) between(from, to []vmstructs.Scope, done, left int) []vmstructs.Scope {
	legs := w.route(w.legs[:0], from, to)
	w.legs = legs
	total := 0
	for _, l := range legs {
		total += l.work
	}
	at := total * (2*done + 1) // in halves of an instruction, of 2 * (done + left)
	for _, l := range legs {
		if at -= l.work * 2 * (done + left); at < 0 {
			return l.scopes
		}
	}
	return to
}

// route appends the legs of the way.
func (w *Walker) route(legs []leg, from, to []vmstructs.Scope) []leg {
	if len(from)+len(to) > maxLegs {
		return append(legs, leg{to, 1})
	}
	f, t := len(from)-1, len(to)-1 // the outermost stand last
	for f > 0 && t > 0 && from[f] == to[t] {
		f, t = f-1, t-1
	}
	for i := range f {
		legs = append(legs, leg{from[i:], w.work(from[i].Method, after(from[i].BCI, i), -1)})
	}
	switch {
	case from[f].Method == to[t].Method:
		legs = append(legs, leg{from[f:], w.work(to[t].Method, after(from[f].BCI, f), to[t].BCI)})
	default:
		// Two methods that may be called from one place.
		legs = append(legs, leg{from[f:], w.work(from[f].Method, after(from[f].BCI, f), -1)})
		legs = append(legs, leg{to[t:], w.work(to[t].Method, 0, to[t].BCI)})
	}
	for i := t - 1; i >= 0; i-- {
		legs = append(legs, leg{to[i:], w.work(to[i].Method, 0, to[i].BCI)})
	}
	return legs
}

// after is where a method goes on: at its bytecode, or behind it if that has called the method inside.
func after(bci int32, inside int) int32 {
	if inside > 0 {
		return -bci - 2
	}
	return bci
}

// work is how much the bytecodes of a method have to do on the shortest way from one index to another, or to a return
// if that is -1. from below -1 is behind the bytecode at -from-2; -1 is the entry.
func (w *Walker) work(m *vmstructs.Method, from, to int32) int {
	code := w.bytecodes(m)
	behind := from < -1
	if behind {
		from = -from - 2
	}
	first := vmstructs.BytecodeAt(code, max(from, 0))
	if first < 0 {
		return 1
	}
	const far = 1 << 30
	cost := w.costs[:0]
	for range code {
		cost = append(cost, far)
	}
	w.costs = cost
	cost[first] = 0
	best := far
	for pass := range 2 { // the second for ways that go back
		for i := range code {
			b := &code[i]
			c := cost[i]
			if c == far {
				continue
			}
			if b.BCI == to && (i != first || pass > 0 || !behind) || to < 0 && b.Returns() {
				best = min(best, c+weigh(b))
			}
			if i != first || !behind {
				c += weigh(b)
			}
			if b.Target >= 0 {
				if t := vmstructs.BytecodeAt(code, b.Target); t >= 0 {
					cost[t] = min(cost[t], c)
				}
			}
			if !b.Ends() && i+1 < len(code) {
				cost[i+1] = min(cost[i+1], c)
			}
		}
	}
	if best == far {
		best = 4
	}
	if m.Synchronized && (to < 0 || from <= 0 && !behind) {
		best += workMonitor
	}
	return max(best, 1)
}

// weigh is about how many quarters of a machine instruction a bytecode becomes.
func weigh(b *vmstructs.Bytecode) int {
	switch op := b.Op; {
	case op >= vmstructs.OpIaload && op <= vmstructs.OpSaload, op >= vmstructs.OpIastore && op <= vmstructs.OpSastore:
		return 12 // with the check of the bounds
	case op >= vmstructs.OpInvoke && op <= vmstructs.OpInvokeLast, op == vmstructs.OpCheckcast, op == vmstructs.OpInstanceof:
		return 12
	case op >= vmstructs.OpNew && op <= vmstructs.OpAnewarray, op == vmstructs.OpMonitorenter, op == vmstructs.OpMonitorexit:
		return workMonitor
	case op == vmstructs.OpGetfield, op == vmstructs.OpPutfield, b.Target >= 0:
		return 8
	case op == vmstructs.OpGetstatic, op == vmstructs.OpPutstatic, op == vmstructs.OpArraylength:
		return 6
	case op >= vmstructs.OpIadd && op <= vmstructs.OpDcmpg:
		return 4
	}
	return 1 // loads and stores of locals, constants: registers
}

// workMonitor is the work of taking or giving a monitor, and of an allocation.
const workMonitor = 40

// bytecodes reads a method's bytecodes once.
func (w *Walker) bytecodes(m *vmstructs.Method) []vmstructs.Bytecode {
	code, ok := w.bytecode[m]
	if !ok {
		code, _ = w.vm.Bytecodes(m) // without them a way has no length
		w.bytecode[m] = code
	}
	return code
}
