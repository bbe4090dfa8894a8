//go:build linux

package session

import (
	"time"

	"goprof/sampler"
)

// CPUTime is what the process has used so far, with that of threads that have ended. It is 0 where that cannot be
// asked:
// the process is gone.
func (s *Session) CPUTime() time.Duration { return sampler.ProcessCPU(s.Process.PID()) }
