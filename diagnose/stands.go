//go:build linux

package diagnose

import (
	"fmt"

	"goprof/session"
)

// StandsStill returns why no thread of a process can run now, and the remedy. why is empty if threads can run.
func StandsStill(s *session.Session) (why, remedy string) {
	switch frozen := s.Frozen(); {
	case frozen != nil:
		return "it is " + frozen.Text() + ": no thread runs", frozen.Thaw()
	case s.Stopped():
		return "it is stopped (SIGSTOP or Ctrl-Z)",
			fmt.Sprintf("kill -CONT %d lets it run; goprof dump --pid %[1]d shows where it stands", s.Process.PID())
	}
	return "", ""
}
