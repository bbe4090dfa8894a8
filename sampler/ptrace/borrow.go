//go:build linux

package ptrace

// A Runner keeps an OS thread and room for a stack. Tracers of several processes that share an OS thread take turns,
// so one Runner does for all of them.

// Borrow takes the Runners of another Tracer of the same OS thread, and notes the CPU to which that Tracer is bound.
// GiveBack ends the loan.
func (t *Tracer) Borrow(from *Tracer) {
	t.owner, t.stayAt, t.preempters = from.owner, from.stayAt, from.preempters
	t.gate, t.releaser = from.openGate(), from.openReleaser()
	if from.reader != nil && t.reader == nil {
		t.reader, from.reader = from.reader, nil
	}
}

// GiveBack returns the Runner, or its replacement. If a read did not return, its Runner is kept until it does. The
// sampling thread may have been brought to another CPU meanwhile (aside.go).
func (t *Tracer) GiveBack(to *Tracer) {
	t.Holds() // while there is a gate that tells their cause
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
