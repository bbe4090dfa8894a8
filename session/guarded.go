//go:build linux

package session

// Guarded runs f, which reads the target. It returns true when f has returned. If a call into the target hangs, it
// returns false, the process is given up, and f may go on in the background. So f must not write what its caller reads
// then.
func (s *Session) Guarded(f func()) bool { return s.guarded(f) }
