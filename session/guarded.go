//go:build linux

package session

import "goprof/process"

// Ask returns the result of read, which reads the target. If a call into the target hangs, the process is given up, and
// the error is process.ErrSilent. Then read may continue in the background, so it must not write what its caller reads.
func Ask[T any](s *Session, read func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	told := make(chan answer, 1)
	if !s.guarded(func() {
		value, err := read()
		told <- answer{value, err}
	}) {
		var none T
		return none, process.ErrSilent
	}
	a := <-told
	return a.value, a.err
}
