//go:build linux

package diagnose

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"goprof/process/procfs"
)

// explainMissing explains a pid that no process has.
func (h Host) explainMissing(pid int) Cause {
	c := Cause{Class: NoProcess, Name: "no-process", Why: "there is no such process", Remedy: h.list()}
	s, ok := h.status(pid)
	switch {
	case ok && s.TGID != pid:
		c.Name, c.Why = "thread-id", fmt.Sprintf("that is a thread of process %d", s.TGID)
		c.Remedy = h.instead(pid, s.TGID)
	case ok && s.State == 'Z':
		c.Class, c.Name, c.Why = Gone, "zombie",
			fmt.Sprintf("it has ended and waits for its parent (%d) to collect it", s.Parent)
	case ok:
		c.Class, c.Name, c.Why, c.Remedy = Gone, "exec", "it ended or changed while it was opened", h.command()
	default:
		if found := h.insideNamespaces(pid); len(found) > 0 {
			c.Name = "inner-pid"
			c.Why = fmt.Sprintf("%d is a number inside a container; here that process is %s", pid, found[0])
			c.Remedy = h.instead(pid, found[0].pid)
			if len(found) > 1 {
				c.Why = fmt.Sprintf("%d is a number inside several containers; here those processes are %s", pid,
					joinFirst(found, 5))
				c.Remedy = h.list()
			}
		} else if self, ok := h.status(0); ok && h.nested("pid") {
			c.Why = fmt.Sprintf("there is no such process in goprof's own pid namespace (where goprof is %d)", self.PID)
			c.Remedy = "docker run --pid container:NAME --cap-add SYS_PTRACE ..., or goprof on the host"
		}
		if h.hidden(pid) {
			c = Cause{Class: Forbidden, Name: "hidden", Why: "it belongs to another user, and /proc hides it (hidepid)",
				Remedy: h.sudo()}
		}
	}
	return c
}

// inner is a process that has another number in its own pid namespace.
type inner struct {
	pid  int
	name string
}

func (i inner) String() string { return fmt.Sprintf("%d (%s)", i.pid, i.name) }

// maxProcesses limits how many processes are searched.
const maxProcesses = 1 << 16

// insideNamespaces finds the processes whose number in their own pid namespace is pid.
func (h Host) insideNamespaces(pid int) []inner {
	var found []inner
	for _, p := range h.pids() {
		s, ok := h.status(p)
		if !ok || s.TGID != p || len(s.NSPID) < 2 {
			continue
		}
		for _, n := range s.NSPID[1:] {
			if n == pid {
				found = append(found, inner{p, s.Name})
				break
			}
		}
	}
	return found
}

// pids lists up to maxProcesses processes of the host, lowest number first.
func (h Host) pids() []int {
	dir, err := os.Open(h.proc())
	if err != nil {
		return nil
	}
	defer dir.Close()
	var pids []int
	procfs.Numbers(int(dir.Fd()), func(n int) {
		if n > 0 && len(pids) < maxProcesses {
			pids = append(pids, n)
		}
	})
	return pids
}

// instead returns goprof's own command line with right in place of pid.
func (h Host) instead(pid, right int) string {
	words := strings.Split(h.command(), " ")
	wrong, number := strconv.Itoa(pid), strconv.Itoa(right)
	for i, w := range words {
		flag, isFlag := strings.CutSuffix(w, wrong)
		switch {
		case isFlag && slices.Contains([]string{"--pid=", "-p=", "-p"}, flag):
			words[i] = flag + number
		case w == wrong && i > 0 && (words[i-1] == "--pid" || words[i-1] == "-p"):
			words[i] = number
		default:
			continue
		}
		return strings.Join(words, " ")
	}
	return "goprof record --pid " + number
}

func joinFirst(found []inner, n int) string {
	var words []string
	for i, f := range found {
		if i == n {
			words = append(words, "...")
			break
		}
		words = append(words, f.String())
	}
	return strings.Join(words, ", ")
}
