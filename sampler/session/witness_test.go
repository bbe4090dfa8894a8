//go:build linux

package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

// TestWitnesses asks others where the threads of a JVM stand: the JVM itself (jcmd Thread.print), the JDK's
// debugger (jhsdb jstack) and gdb. Each is held, name by name and line by line, against a
// dump that was taken before. In its long form (GOPROF_PROVE=1: jhsdb and Maven take their time) also jhsdb's mixed stacks, and a
// servlet container at rest.
func TestWitnesses(t *testing.T) {
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		if os.Getenv("GOPROF_REQUIRE_JVM") == "1" {
			t.Fatal("GOPROF_REQUIRE_JVM=1, but no gdb (scripts/tools.sh gdb installs it)")
		}
		t.Skip("needs gdb (scripts/tools.sh gdb installs it)")
	}
	library := buildNative(t, "witness.c", "libwitness.so", "-O2")
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		flags := append(append(jniFlags(jdk), jvmtest.KindsFlags...), "--", library.path)
		jvm := jvmtest.Start(t, jdk, "truth.Witness", flags...)
		hearAll(t, jvm, gdb, jvm.Command("threads"))
	})
}

// hearAll asks all witnesses about a JVM. The threads that are named stand still; of others what they had
// done while a witness looked is not told.
func hearAll(t *testing.T, jvm *jvmtest.JVM, gdb string, names []string) {
	t.Helper()
	var still []jvmtest.ExpectedStack
	for _, name := range names {
		still = append(still, jvmtest.ExpectedStack{Thread: name, Parked: true})
	}
	if len(still) == 0 {
		t.Fatal("no threads that stand still")
	}
	s, pid := attach(t, jvm.PID), strconv.Itoa(jvm.PID)
	hear(t, s, still, "jcmd Thread.print", func(t *testing.T, ours []dumpedThread) (*hearing, error) {
		text, err := ask(t, jvm.PID, jvm.JDK.Tool("jcmd"), pid, "Thread.print", "-l")
		if err != nil {
			return nil, err
		}
		return hearJava(&threadPrint, text, ours)
	})
	hear(t, s, still, "jhsdb jstack", func(t *testing.T, ours []dumpedThread) (*hearing, error) {
		text, err := ask(t, jvm.PID, jvm.JDK.Tool("jhsdb"), "jstack", "--pid", pid)
		if err != nil {
			return nil, err
		}
		return hearJava(&jstack, text, ours)
	})
	symbols := imageSymbols{paths: imagePaths(t, jvm.PID), read: map[string]map[string][]uint64{}}
	hear(t, s, still, "gdb", func(t *testing.T, ours []dumpedThread) (*hearing, error) {
		args := []string{"-nx", "-batch", "-p", pid}
		for _, command := range gdbCommands {
			args = append(args, "-ex", command)
		}
		text, err := ask(t, jvm.PID, gdb, args...)
		if err != nil {
			return nil, err
		}
		return hearNative(text, ours, symbols.alias)
	})
}

// hearing is what came of one comparison.
type hearing struct {
	told    string         // what was compared
	against map[int]string // by thread number, in what a witness and a walk differ
}

// hear compares a dump with what a witness says then. Threads of the JVM's own go about their business
// meanwhile: where one differs, dump and witness are repeated. One that stands still must agree at
// once.
func hear(t *testing.T, s *Session, still []jvmtest.ExpectedStack, name string, witness func(*testing.T, []dumpedThread) (*hearing, error)) {
	t.Helper()
	for try := 1; ; try++ {
		ours := dumpedParked(t, s, still, DumpOptions{})
		begun := time.Now()
		heard, err := witness(t, ours)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		t.Logf("%s: %s (%.1f s)", name, heard.told, time.Since(begun).Seconds())
		wrong := ""
		for _, tid := range slices.Sorted(maps.Keys(heard.against)) {
			i := slices.IndexFunc(ours, func(th dumpedThread) bool { return th.TID == tid })
			if i < 0 {
				if !begunByWitness(s, tid) {
					wrong += fmt.Sprintf("\nthread %d: %s", tid, heard.against[tid])
				}
				continue
			}
			th := &ours[i]
			why := fmt.Sprintf("\n%s, thread %d: %s\n%s", th.Name, tid, heard.against[tid], dumpedText(th))
			if slices.ContainsFunc(still, func(s jvmtest.ExpectedStack) bool { return s.Thread == th.Name }) {
				t.Errorf("%s:%s", name, why)
			} else {
				wrong += why
			}
		}
		if wrong == "" {
			return
		}
		if try == 3 {
			t.Errorf("%s: after %d tries:%s", name, try, wrong)
			return
		}
		t.Logf("%s: once more, these have moved or are wrong:%s", name, wrong)
	}
}

// begunByWitness: the JVM answers jcmd on a thread that it makes when first asked.
func begunByWitness(s *Session, tid int) bool {
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", s.Process.PID(), tid))
	return err == nil && strings.TrimSpace(string(comm)) == "Attach Listener"
}

// hearJava compares all Java threads with what a tool of the JDK says.
func hearJava(reader *witnessText, text []byte, ours []dumpedThread) (*hearing, error) {
	theirs, err := reader.threads(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	h, frames, lines, seen := &hearing{against: map[int]string{}}, 0, 0, map[int]bool{}
	for i := range theirs {
		w := &theirs[i]
		seen[w.tid] = true
		n := slices.IndexFunc(ours, func(th dumpedThread) bool { return th.TID == w.tid })
		if n < 0 {
			h.against[w.tid] = fmt.Sprintf("%q is not in the dump", w.name)
			continue
		}
		if why := javaDifference(w, &ours[n]); why != "" {
			h.against[w.tid] = why
			continue
		}
		frames += len(w.frames)
		for _, f := range w.frames {
			if f.line > 0 {
				lines++
			}
		}
	}
	for i := range ours {
		if th := &ours[i]; !seen[th.TID] && len(javaOf(th)) > 0 {
			h.against[th.TID] = "the witness does not know it"
		}
	}
	h.told = fmt.Sprintf("%d threads agree, %d Java frames, %d of them with lines", len(theirs)-len(h.against), frames, lines)
	return h, nil
}

// hearNative compares the native frames of all threads with what gdb says.
func hearNative(text []byte, ours []dumpedThread, alias func(module, a, b string) bool) (*hearing, error) {
	theirs, err := gdbThreads(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	h, judge := &hearing{against: map[int]string{}}, nativeJudge{aliases: alias, ways: map[nativeWay]int{}}
	for i := range ours {
		th := &ours[i]
		gdb, ok := theirs[th.TID]
		delete(theirs, th.TID)
		if !ok {
			h.against[th.TID] = "gdb does not know it"
		} else if why := judge.difference(gdb, th); why != "" {
			h.against[th.TID] = why
		}
	}
	for tid := range theirs {
		h.against[tid] = "it is not in the dump"
	}
	h.told = fmt.Sprintf("%d threads agree, %d native frames, %d threads to their roots", judge.threads, judge.frames, judge.whole)
	for _, way := range slices.Sorted(maps.Keys(judge.ways)) {
		h.told += fmt.Sprintf("; %s: %d", way, judge.ways[way])
	}
	return h, nil
}

// askLimit is how long a witness may take: jhsdb sometimes hangs.
const askLimit = 90 * time.Second

// ask runs a tool on a JVM and returns what it says. One that hangs is killed, and asked again.
func ask(t *testing.T, pid int, tool string, args ...string) ([]byte, error) {
	t.Helper()
	var err error
	for range 3 {
		var text []byte
		if text, err = askOnce(pid, tool, args); err == nil {
			return text, nil
		}
		t.Logf("%v", err)
	}
	return nil, fmt.Errorf("no answer in three tries: %w", err)
}

func askOnce(pid int, tool string, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.WaitDelay = 5 * time.Second
	// The JDK's tools are Java themselves; this makes them start sooner.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "JAVA_TOOL_OPTIONS=-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		// A debugger that is killed may leave the JVM stopped.
		err = errors.Join(ctx.Err(), syscall.Kill(pid, syscall.SIGCONT))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(tool), strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

// imagePaths are the files that a process has mapped, by the last part of their names.
func imagePaths(t *testing.T, pid int) map[string]string {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{}
	for line := range strings.Lines(string(maps)) {
		if i := strings.IndexByte(line, '/'); i >= 0 {
			path := strings.TrimSpace(line[i:])
			paths[filepath.Base(path)] = path
		}
	}
	return paths
}
