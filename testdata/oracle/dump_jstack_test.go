//go:build linux

package oracle

import (
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

// TestJstackLayout: what "goprof dump --format jstack" prints of threads that stand still is, but for what it
// leaves out, what the JVM itself prints of them: names, numbers, states, frames, and the locks at them, with their
// addresses. The other threads are there, too.
func TestJstackLayout(t *testing.T) {
	t.Parallel()
	goprof := buildGoprof(t)
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.LocksGraph", "--", "7", "12", "mrw", "0")
		pid := strconv.Itoa(jvm.PID)
		theirText, err := ask(t, jvm.PID, jdk.Tool("jcmd"), pid, "Thread.print", "-l")
		if err != nil {
			t.Fatal(err)
		}
		theirs := jstackBlocks(t, string(theirText))
		ourText, ours := ourJstack(t, goprof, pid, waitLines(theirs))
		still := 0
		for _, nid := range slices.Sorted(maps.Keys(theirs)) {
			their, our := theirs[nid], ours[nid]
			if our == nil {
				t.Errorf("%q, thread %d, is not there", their.name, nid)
				continue
			}
			if their.name != "main" && !strings.HasPrefix(their.name, "lock-") {
				continue // it may do something meanwhile
			}
			still++
			their.synchronizers = slices.DeleteFunc(their.synchronizers, func(s string) bool {
				return !slices.Contains(our.synchronizers, s) // those for which nobody waits cannot be seen
			})
			if their.name == "lock-reenter" { // the JVM says of this one that it both waits for the lock and has it
				their.forgetLocks()
				our.forgetLocks()
			}
			their.oneLineForEachLock()
			if a, b := fmt.Sprint(their), fmt.Sprint(our); a != b {
				t.Errorf("the JVM says\n%s\ngoprof says\n%s", a, b)
			}
		}
		if still < 13 {
			t.Errorf("only %d threads were compared", still)
		}
		if theirs, ours := strings.Count(string(theirText), "Found one Java-level deadlock:"),
			strings.Count(ourText, "Found one Java-level deadlock:"); ours != theirs {
			t.Errorf("%d deadlocks, the JVM says %d", ours, theirs)
		}
	})
}

// ourJstack dumps until as many waits are told: of threads that had no CPU yet to go back to sleep on nothing is told.
// On a busy machine that takes several dumps.
func ourJstack(t *testing.T, goprof, pid string, waits int) (text string, ours map[int]*jstackBlock) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		out, err := exec.Command(goprof, "dump", pid, "--format", "jstack", "--raw-names").Output()
		if err != nil {
			t.Fatal(err)
		}
		if text, ours = string(out), jstackBlocks(t, string(out)); waitLines(ours) >= waits || time.Now().After(end) {
			return text, ours
		}
	}
}

// waitLines counts what the program's threads are told to wait for.
func waitLines(blocks map[int]*jstackBlock) (n int) {
	for _, b := range blocks {
		if !strings.HasPrefix(b.name, "lock-") || b.name == "lock-reenter" {
			continue
		}
		for _, line := range b.lines {
			if strings.HasPrefix(line, "\t- waiting ") || strings.HasPrefix(line, "\t- parking ") {
				n++
			}
		}
	}
	return n
}

// jstackBlock is what such a dump says of one thread. What is not the same in two dumps of a thread that stands
// still is left out: times.
type jstackBlock struct {
	name, id, daemon, prio, address string
	doing, page                     string
	state                           string
	lines                           []string // frames, and the locks at them
	synchronizers                   []string
}

func (b *jstackBlock) String() string {
	return fmt.Sprintf("%q %s %s %s %s %s %s\n%s\n%s\n%s", b.name, b.id, b.daemon, b.prio, b.address, b.doing, b.page,
		b.state, strings.Join(b.lines, "\n"), strings.Join(b.synchronizers, "\n"))
}

func (b *jstackBlock) forgetLocks() {
	b.doing = ""
	b.lines = slices.DeleteFunc(b.lines, func(line string) bool { return strings.HasPrefix(line, "\t- ") })
}

// oneLineForEachLock keeps of several lines for a lock that was taken again and again the first that was, and none
// for one that was given up in Object.wait: that the thread waits on it says all.
func (b *jstackBlock) oneLineForEachLock() {
	for i, line := range b.lines {
		for _, older := range b.lines[i+1:] {
			if lock, ok := strings.CutPrefix(line, "\t- locked "); ok && older == "\t- locked "+lock {
				b.lines[i] = ""
			}
		}
		for k := range b.lines {
			lock, ok := strings.CutPrefix(line, "\t- waiting on ")
			if ok && (b.lines[k] == "\t- locked "+lock || b.lines[k] == "\t- waiting to re-lock in wait() "+lock) {
				b.lines[k] = ""
			}
		}
	}
	b.lines = slices.DeleteFunc(b.lines, func(line string) bool { return line == "" })
}

var (
	jstackHead = regexp.MustCompile(`^"(.*)" (?:#(\d+) )?(?:\[\d+\] )?(daemon )?(?:prio=(\d+) )?os_prio=-?\d+ (?:cpu=[0-9.]+ms )?` +
		`(?:elapsed=[0-9.]+s )?(?:tid=(0x[0-9a-f]+) )?nid=(0x[0-9a-f]+|\d+) ([^\[]+?) *(\[0x[0-9a-f]+\])?$`)
	jstackModule = regexp.MustCompile(`\([\w.]+@[^/()]+/`)
	jstackArray  = regexp.MustCompile(`\(a \[L([^;]+);\)`)
	jstackHidden = regexp.MustCompile(`\+0x[0-9a-f]+`)
	jstackMirror = regexp.MustCompile(`\(a java\.lang\.Class for .*\)`)
)

// jstackBlocks reads such a dump, by the threads' numbers.
func jstackBlocks(t *testing.T, text string) map[int]*jstackBlock {
	t.Helper()
	text, _, _ = strings.Cut(text, "Found one Java-level deadlock:")
	blocks := map[int]*jstackBlock{}
	var last *jstackBlock
	synchronizers := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		m := jstackHead.FindStringSubmatch(line)
		switch {
		case m != nil:
			nid, err := strconv.ParseInt(m[6], 0, 32)
			if err != nil || blocks[int(nid)] != nil {
				t.Fatalf("%q: %v, or it is there twice", line, err)
			}
			last = &jstackBlock{name: m[1], id: m[2], daemon: m[3], prio: m[4], address: m[5], doing: m[7], page: m[8]}
			blocks[int(nid)], synchronizers = last, false
		case strings.HasPrefix(line, `"`):
			t.Fatalf("what thread is that? %s", line)
		case last == nil || line == "" || line == "\t- None":
		case strings.HasPrefix(line, "   java.lang.Thread.State: "):
			last.state = line
		case line == "   Locked ownable synchronizers:":
			synchronizers = true
		case strings.HasPrefix(line, "\t"):
			line = jstackArray.ReplaceAllString(line, "(a $1[])")
			line = plainHidden(jstackMirror.ReplaceAllString(jstackModule.ReplaceAllString(line, "("), "(a java.lang.Class)"))
			line = jstackHidden.ReplaceAllString(line, "") // up to JDK 14 the name of a lambda's class has none inside the JVM
			if synchronizers {
				last.synchronizers = append(last.synchronizers, line)
			} else {
				last.lines = append(last.lines, line)
			}
		}
	}
	return blocks
}
