//go:build linux

package vitals

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

// TestCompileQueues: compiler threads are kept from running. What waits for them is what jcmd prints.
func TestCompileQueues(t *testing.T) {
	jvmtest.ForDrawnJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		p := attach(t, jdk, "-Xmx128m")
		symbols := p.read().JVM.Safepoints.Operation.IsKnown()
		if queues, ok := p.read().JVM.Code.Queues.Get(); !symbols {
			if ok {
				t.Errorf("without symbols: %v", queues)
			}
			return
		}
		p.current()
		held, release := jvmtest.HoldThreads(t, p.PID, "CompilerThre")
		defer release()
		began := time.Now()
		p.Command("methods 150")
		text, err := exec.Command(jdk.Tool("jcmd"), strconv.Itoa(p.PID), "Compiler.queue").CombinedOutput()
		if err != nil || held < 2 {
			t.Fatalf("%d compiler threads: %v %s", held, err, text)
		}
		queues, ok := p.read().JVM.Code.Queues.Get()
		after, _ := exec.Command(jdk.Tool("jcmd"), strconv.Itoa(p.PID), "Compiler.queue").CombinedOutput()
		first, second := queued(string(text)), queued(string(after))
		if !ok || len(queues) != 2 {
			t.Fatalf("%+v", queues)
		}
		for _, q := range queues {
			// jcmd itself has the JVM run code, which may be queued.
			low, high := len(first[q.Compiler]), len(second[q.Compiler])
			if q.Length < low || q.Length > high {
				t.Errorf("%s: %d wait, jcmd says %d and then %d", q.Compiler, q.Length, low, high)
			}
			if low == 0 {
				continue
			}
			// jcmd writes java.lang.String::hashCode (60 bytes).
			if want := strings.Replace(first[q.Compiler][0], "::", ".", 1); q.Oldest != want {
				t.Errorf("%s: %q is the oldest, jcmd says %q", q.Compiler, q.Oldest, want)
			}
			waited, ok := q.Waited.Get()
			if most := time.Since(began); !ok || waited <= 0 || waited > most {
				t.Errorf("%s has waited %v, %v at most", q.Oldest, q.Waited, most)
			}
		}
		if len(second["C1"]) < 10 {
			t.Errorf("only %d are queued: %s", len(second["C1"]), after)
		}
	})
}

// current fails if the program's own methods are never seen while they are compiled.
func (p *patient) current() {
	p.t.Helper()
	done := make(chan bool)
	go func() {
		p.Command("methods 300")
		close(done)
	}()
	seen := false
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		for _, c := range p.read().JVM.Code.Current {
			seen = seen || strings.Contains(c.Thread, c.Method[:2]+" CompilerThread")
		}
	}
	if !seen {
		p.t.Error("no compiler thread was seen at work")
	}
}

var queuedTask = regexp.MustCompile(`(?m)^ *\d+ .*? (\S+::\S+).*bytes\)$`)

// queued are the methods that jcmd lists for each compiler.
func queued(text string) map[string][]string {
	found := map[string][]string{}
	compiler := ""
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(line, " compile queue"); ok { // "Contents of C1 compile queue" up to 11
			compiler = name[len(name)-2:]
		}
		if m := queuedTask.FindStringSubmatch(line); m != nil && compiler != "" {
			found[compiler] = append(found[compiler], m[1])
		}
	}
	return found
}
