//go:build linux

package session

import (
	"time"

	"goprof/sampler/threads"
)

// CPUTime returns the CPU time that the process has used so far, including threads that have ended. It is 0 if the
// process is gone.
func (s *Session) CPUTime() time.Duration { return threads.ProcessCPU(s.Process.PID()) }
