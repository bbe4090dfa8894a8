//go:build linux

package diagnose

import (
	"fmt"

	"goprof/session"
)

// StandsStill says why no thread of a process can run now, and what lets them run. why is empty if they can.
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
