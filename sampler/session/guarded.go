//go:build linux

package session

// Guarded runs f, which reads the target, and returns when f has or a call into the target hangs: then it returns
// false, the process is given up, and f may go on in the background. So f must not write what its caller reads then.
func (s *Session) Guarded(f func()) bool { return s.guarded(f) }
