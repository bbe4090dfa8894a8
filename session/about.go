//go:build linux

package session

import (
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"goprof/process/procfs"
	"goprof/profile"
)

// program returns the main class or the jar. For a JVM inside another program, which has neither, it returns that
// program's name.
func (s *Session) program() string {
	if name, _, _ := strings.Cut(strings.TrimSpace(s.VM.JavaCommand()), " "); name != "" { // arguments may be secret
		return name
	}
	file, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", s.Process.PID()))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(path.Base(file), " (deleted)")
}

// Stopped reports whether a signal has stopped the process (SIGSTOP, Ctrl-Z).
func (s *Session) Stopped() bool { return s.leaderState() == 'T' }

// Held reports whether a debugger holds the process.
func (s *Session) Held() bool { return s.leaderState() == 't' }

func (s *Session) leaderState() byte {
	leader, err := s.Process.Thread(s.Process.PID())
	if err != nil {
		return 0
	}
	return leader.State
}

// Frozen returns the control group that has frozen the process (docker pause). It is nil if the process is not frozen.
func (s *Session) Frozen() *procfs.Frozen { return procfs.FrozenBy(s.Process.PID()) }

// About returns what is known of the JVM without a recording.
func (s *Session) About() profile.Meta { return s.meta(RecordOptions{}) }

// Started returns when the process was started. It is zero if that is not known.
func (s *Session) Started() time.Time { return startOf(s.Process.PID()) }
