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
func (w *Walker) between(from, to []vmstructs.Scope, done, left int, counts bool) []vmstructs.Scope {
	legs := w.route(w.legs[:0], from, to, counts)
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
func (w *Walker) route(legs []leg, from, to []vmstructs.Scope, counts bool) []leg {
	if len(from)+len(to) > maxLegs {
		return append(legs, leg{to, 1})
	}
	f, t := len(from)-1, len(to)-1 // the outermost stand last
	for f > 0 && t > 0 && from[f] == to[t] {
		f, t = f-1, t-1
	}
	for i := range f {
		legs = append(legs, leg{from[i:], w.work(from[i].Method, from[i].BCI, i > 0, toReturn, counts)})
	}
	if from[f].Method == to[t].Method {
		legs = append(legs, leg{from[f:], w.work(to[t].Method, from[f].BCI, f > 0, to[t].BCI, counts)})
	} else { // two methods that may be called from one place
		legs = append(legs, leg{from[f:], w.work(from[f].Method, from[f].BCI, f > 0, toReturn, counts)})
		legs = append(legs, leg{to[t:], w.work(to[t].Method, 0, false, to[t].BCI, counts)})
	}
	for i := t - 1; i >= 0; i-- {
		legs = append(legs, leg{to[i:], w.work(to[i].Method, 0, false, to[i].BCI, counts)})
	}
	return legs
}

// toReturn is where work ends that leaves the method; -1 is its entry.
const toReturn = -2

// work is how much the bytecodes of a method have to do from one index to another, or to a return. behind: the first
// of them is done, as a call out of which the program comes. counts: methods count their entries.
func (w *Walker) work(m *vmstructs.Method, from int32, behind bool, to int32, counts bool) int {
	code := w.bytecodes(m)
	first := vmstructs.BytecodeAt(code, max(from, 0))
	if first < 0 {
		return 1
	}
	work := w.shortest(code, first, behind, to)
	enters := from <= 0 && !behind
	if counts && enters {
		work += workCount
	}
	if m.Synchronized && (enters || to == toReturn) {
		work += workMonitor
	}
	return work
}

// unknownWork is that of code which throws, or turns in a way that bytecodes do not.
const unknownWork = 4

// shortest is the work on the shortest way through bytecodes.
func (w *Walker) shortest(code []vmstructs.Bytecode, first int, behind bool, to int32) int {
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
			done := behind && i == first
			if to == toReturn && b.Returns() || to != toReturn && b.BCI == max(to, 0) && (!done || pass > 0) {
				best = min(best, c+weigh(b))
			}
			if !done {
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
		return unknownWork
	}
	return best
}

// weigh is about how many quarters of a machine instruction a bytecode becomes. What it calls is not counted: that
// is a leg of its own, or is not known.
func weigh(b *vmstructs.Bytecode) int {
	switch op := b.Op; {
	case op >= vmstructs.OpIaload && op <= vmstructs.OpSaload, op >= vmstructs.OpIastore && op <= vmstructs.OpSastore:
		return 12 // with the check of the bounds
	case op == vmstructs.OpCheckcast, op == vmstructs.OpInstanceof:
		return 12
	case op >= vmstructs.OpNew && op <= vmstructs.OpAnewarray,
		op == vmstructs.OpMonitorenter, op == vmstructs.OpMonitorexit:
		return workMonitor
	case op == vmstructs.OpGetfield, op == vmstructs.OpPutfield, b.Target >= 0:
		return 8
	case op == vmstructs.OpGetstatic, op == vmstructs.OpPutstatic, op == vmstructs.OpArraylength:
		return 6
	case op >= vmstructs.OpIadd && op <= vmstructs.OpDcmpg, op >= vmstructs.OpInvoke && op <= vmstructs.OpInvokeLast:
		return 4
	}
	return 1 // loads and stores of locals, constants: registers
}

const (
	// workMonitor is the work of taking a monitor or giving it back, and of an allocation.
	workMonitor = 80
	// workCount is what a method does at its entry in tier 3, which counts for C2.
	workCount = 40
)

// maxBytecodes bounds those of all methods together, of 12 bytes each.
const maxBytecodes = 1 << 19

// bytecodes reads a method's bytecodes once.
func (w *Walker) bytecodes(m *vmstructs.Method) []vmstructs.Bytecode {
	code, ok := w.bytecode[m]
	if !ok {
		code, _ = w.vm.Bytecodes(m) // without them a leg has no length
		if w.bytecodeSize += len(code) + 1; w.bytecodeSize > maxBytecodes {
			w.bytecode, w.bytecodeSize = make(map[*vmstructs.Method][]vmstructs.Bytecode), len(code)
		}
		w.bytecode[m] = code
	}
	return code
}
