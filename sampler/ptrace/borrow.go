//go:build linux

package ptrace

// A Runner needs an OS thread and memory for a stack. Tracers of several processes that share an OS thread look in
// turn, so they share one Runner.

// Borrow takes the Runners of another Tracer of the same OS thread, and notes the CPU to which that Tracer is bound.
// GiveBack ends the loan.
func (t *Tracer) Borrow(from *Tracer) {
	t.owner, t.stayAt, t.preempters = from.owner, from.stayAt, from.preempters
	t.gate, t.releaser = from.openGate(), from.openReleaser()
	if from.reader != nil && t.reader == nil {
		t.reader, from.reader = from.reader, nil
	}
}

// GiveBack returns the Runner, or its replacement. If a read has not returned, the borrower keeps that Runner. GiveBack
// also passes on the CPU, because the sampling thread may have moved (aside.go).
func (t *Tracer) GiveBack(to *Tracer) {
	t.Holds() // while there is a gate that knows their cause
	t.preempters, to.stayAt, t.gate, t.releaser = nil, t.stayAt, nil, nil
	switch {
	case t.reader == nil:
	case to.reader == nil:
		t.reader, to.reader = nil, t.reader
	default:
		t.reader.runner.End()
		t.reader = nil
	}
}

// Prepare binds the Tracer to this OS thread and finds a Runner, and reports whether it could.
func (t *Tracer) Prepare() bool { return t.onItsThread() && t.openReader() }
