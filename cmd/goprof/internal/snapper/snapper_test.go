//go:build linux

package snapper

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"goprof/agent/alarm"
	machine "goprof/testdata/host"
	"goprof/triage/vitals"
)

// heard is what was said.
type heard struct {
	mu   sync.Mutex
	list []string
}

func (h *heard) say(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, text)
}

func (h *heard) has(part string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.list, func(s string) bool { return strings.Contains(s, part) })
}

// TestSnapperDies: a second process that has died is replaced, and the new one is told the list of JVMs. If none can be
// started, that is said, and SIGUSR2 is answered.
func TestSnapperDies(t *testing.T) {
	dir := t.TempDir()
	var h heard
	var made []*exec.Cmd
	program := "sh"
	k := newKeeper(func() *exec.Cmd {
		name := filepath.Join(dir, fmt.Sprint(len(made)))
		made = append(made, exec.Command(program, "-c", `exec cat > "$0"`, name))
		return made[len(made)-1]
	}, h.say)
	k.lives = time.Millisecond
	if err := k.start(); err != nil {
		t.Fatal(err)
	}
	go k.keep()
	said := func(n int, want string) func() bool {
		return func() bool {
			b, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint(n)))
			return string(b) == want
		}
	}
	k.tell([]int{12, 34})
	machine.WaitFor(t, "the list", said(0, "jvms 12 34\n"))
	made[0].Process.Kill()
	machine.WaitFor(t, "the list again", said(1, "jvms 12 34\n"))
	k.asked <- syscall.SIGUSR2
	machine.WaitFor(t, "the signal", said(1, "jvms 12 34\nall\n"))
	program = dir // no program
	made[1].Process.Kill()
	machine.WaitFor(t, "an end", func() bool { return h.has("snaps are off until the agent is restarted") })
	k.asked <- syscall.SIGUSR2
	machine.WaitFor(t, "an answer", func() bool { return h.has("SIGUSR2: no snaps are taken") })
	k.stop()
	if !h.has("has ended: signal: killed") || !h.has("another process takes snaps now") {
		t.Errorf("%q", h.list)
	}
	if <-k.ended; made[1].ProcessState == nil {
		t.Error("it is a zombie")
	}
}

// TestSnapQueue: snaps are taken one at a time. A second one within ten minutes is refused, and that is said. The end
// of the input ends a snap, and those that wait are not taken.
func TestSnapQueue(t *testing.T) {
	var h heard
	s := newWatcher(Options{Rules: alarm.Rules{Signal: true}, Dir: t.TempDir(), Say: h.say})
	took := make(chan int)
	s.take = func(ctx context.Context, pid int, _ string, _ io.Reader) {
		took <- pid
		<-ctx.Done() // as a snap that takes minutes
	}
	from, to := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(from)
	}()
	fmt.Fprint(to, "jvms 12 34\nall\n")
	first := <-took
	fmt.Fprint(to, "all\n")
	refusal := fmt.Sprintf("no snap of process %d (SIGUSR2): it has had", first)
	machine.WaitFor(t, "a refusal", func() bool { return h.has(refusal) })
	other := 12 + 34 - first
	fmt.Fprintf(to, "jvms %d 56\nall\n", first)
	machine.WaitFor(t, "the end of another JVM", func() bool {
		return h.has(fmt.Sprintf("no snap of process %d: before its turn", other))
	})
	to.Close()
	select {
	case <-ended:
	case pid := <-took:
		t.Errorf("a snap of %d was taken after the end", pid)
	case <-time.After(time.Minute):
		t.Error("it outlives its agent")
	}
}

// TestLastingAlarm: an alarm that lasts is refused aloud once for each snap; SIGUSR2 is always.
func TestLastingAlarm(t *testing.T) {
	var h heard
	s := newWatcher(Options{Say: h.say})
	s.taken[12] = time.Now().Add(-3*time.Minute - time.Second)
	for _, why := range []string{"stuck", "stuck", sigusr2, sigusr2, "stuck"} {
		s.want(12, why)
	}
	if len(h.list) != 3 || !strings.Contains(h.list[0], "(stuck): it has had a snap 3 minutes ago") || len(s.due) > 0 {
		t.Errorf("%q %v", h.list, s.due)
	}
	s.taken[12] = time.Now().Add(-snapAgain)
	if s.want(12, "stuck"); len(s.due) != 1 {
		t.Errorf("%q %v", h.list, s.due)
	}
}

// TestPastVitals: the newest readings of five minutes stay, also of a JVM that does not answer any more.
func TestPastVitals(t *testing.T) {
	w := &watchedJVM{}
	for i := range 100 {
		w.note(&vitals.Reading{At: time.Unix(int64(i), 0)})
	}
	w.close() // it did not answer
	if len(w.past) != 60 || w.past[0][0] != "1970-01-01T00:00:40Z" {
		t.Errorf("%d readings from %v on", len(w.past), w.past[0])
	}
}

func TestTrimSnaps(t *testing.T) {
	dir := t.TempDir()
	for i := range 6 {
		name := filepath.Join(dir, fmt.Sprintf("snap-%d-20261129T05550%dZ.zip", 10+i, i))
		if i == 5 {
			name = filepath.Join(dir, "snap.zip") // not the agent's
		}
		os.WriteFile(name, make([]byte, 100), 0o600)
		old := time.Now().Add(time.Duration(i-10) * time.Hour)
		os.Chtimes(name, old, old)
	}
	left := func() (n int) {
		all, _ := os.ReadDir(dir)
		return len(all)
	}
	if err := trimSnaps(dir, 4, 1000); err != nil || left() != 5 {
		t.Errorf("%v: %d are left", err, left())
	}
	if err := trimSnaps(dir, 4, 250); err != nil || left() != 3 {
		t.Errorf("%v: %d are left", err, left())
	}
	if err := trimSnaps(dir, 4, 1); err != nil || left() != 2 { // the newest one, and the other file
		t.Errorf("%v: %d are left", err, left())
	}
}
