//go:build linux

package oracle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestWitnesses asks others where the threads of a JVM stand: the JVM itself (jcmd Thread.print), the
// JDK's debugger (jhsdb jstack) and gdb. Each is held, name by name and line by line, against a dump
// that was taken before. gdb comes last: it may harm the JVM.
//
// Hidden frames (lambdas, method handles) are compared, too: all witnesses show them; only how they
// part a hidden class from its address is made alike.
//
// In its long form (GOPROF_PROVE=1, as make prove sets it) the JVM also runs in other modes, jhsdb tells mixed
// stacks, and a servlet container at rest is asked about: that takes minutes.
func TestWitnesses(t *testing.T) {
	t.Parallel()
	jvmtest.NotQuick(t, jvmtest.StartsJVM)
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		if os.Getenv("GOPROF_REQUIRE_JVM") == "1" {
			t.Fatal("GOPROF_REQUIRE_JVM=1, but no gdb (scripts/tools.sh gdb installs it)")
		}
		t.Skip("needs gdb (scripts/tools.sh gdb installs it)")
	}
	library := buildNative(t, "witness.c", "libwitness.so", "-O2")
	jvmtest.ForDrawnJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, mode := range witnessModes(jdk) {
			t.Run(mode.name, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.Witness", append(mode.flags, "--", library.path)...)
				hearAll(t, jvm, gdb, jvm.Command("threads"))
			})
		}
		if jdk.Version >= 24 { // the first whose thread dump shows them
			t.Run("virtual", func(t *testing.T) { hearVirtual(t, jdk) })
		}
		if longForm {
			t.Run("container", func(t *testing.T) { hearContainer(t, jdk, gdb) })
		}
	})
}

// longForm: make prove.
var longForm = os.Getenv("GOPROF_PROVE") == "1"

// witnessMode is a way to run truth.Witness.
type witnessMode struct {
	name  string
	flags []string
}

func witnessModes(jdk jvmtest.JDK) []witnessMode {
	modes := []witnessMode{{"kinds", append(jniFlags(jdk), jvmtest.KindsFlags...)}}
	if longForm {
		modes = append(modes, witnessMode{"interpreted", append(jniFlags(jdk), "-Xint")},
			witnessMode{"no-flags", jniFlags(jdk)},
			witnessMode{"serial-gc-c1", append(jniFlags(jdk), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")})
	}
	return modes
}

// hearAll asks all witnesses about a JVM. The threads that are named stand still; others may do
// something while a witness looks.
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
	awaitParked(t, s, jvm.PID, still)
	hearJcmd(t, s, jvm, still)
	jhsdb := hasJhsdb(t, jvm.JDK)
	if jhsdb {
		hear(t, s, still, "jhsdb jstack", func(t *testing.T, ours []dumpedThread) (*hearing, error) {
			text, err := ask(t, jvm.PID, jvm.JDK.Tool("jhsdb"), "jstack", "--pid", pid)
			if err != nil {
				return nil, err
			}
			return hearJava(&jstack, text, ours)
		})
	}
	symbols := imageSymbols{paths: imagePaths(t, jvm.PID), read: map[string]map[string][]uint64{}}
	if longForm && jhsdb {
		hear(t, s, still, "jhsdb jstack --mixed", func(t *testing.T, ours []dumpedThread) (*hearing, error) {
			text, err := ask(t, jvm.PID, jvm.JDK.Tool("jhsdb"), "jstack", "--mixed", "--pid", pid)
			if err != nil {
				return nil, err
			}
			return hearMixed(text, ours, symbols.alias)
		})
	}
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

func hasJhsdb(t *testing.T, jdk jvmtest.JDK) bool {
	t.Helper()
	if runtime.GOARCH == "arm64" && jdk.Version <= 17 {
		t.Log("on arm64 the jhsdb of 17 does not find through such stacks itself (UnmappedAddressException in its " +
			"AARCH64Frame)")
		return false
	}
	_, err := os.Stat(jdk.Tool("jhsdb"))
	if err != nil {
		t.Logf("%v has no jhsdb: it came with JDK 9", jdk)
	}
	return err == nil
}

func hearJcmd(t *testing.T, s *session.Session, jvm *jvmtest.JVM, still []jvmtest.ExpectedStack) {
	t.Helper()
	hear(t, s, still, "jcmd Thread.print", func(t *testing.T, ours []dumpedThread) (*hearing, error) {
		text, err := ask(t, jvm.PID, jvm.JDK.Tool("jcmd"), strconv.Itoa(jvm.PID), "Thread.print", "-l")
		if err != nil {
			return nil, err
		}
		return hearJava(&threadPrint, text, ours)
	})
}

// hearVirtual asks the JVM about virtual threads that are mounted: of one all frames are on the stack of
// its carrier, of the other those on top.
func hearVirtual(t *testing.T, jdk jvmtest.JDK) {
	t.Helper()
	jvm := jvmtest.Start(t, jdk, "truth.Virtual")
	s := attach(t, jvm.PID)
	var still []jvmtest.ExpectedStack
	for _, th := range carriersOf(dumped(t, s, session.DumpOptions{})) {
		still = append(still, jvmtest.ExpectedStack{Thread: th.Name, Parked: true})
	}
	if len(still) != 2 {
		t.Fatalf("%d carriers", len(still))
	}
	hearJcmd(t, s, jvm, still)
}

// hearing is what came of one comparison.
type hearing struct {
	told    string         // what was compared
	against map[int]string // by thread number, in what a witness and a walk differ
}

// hear compares a dump with what a witness says then. Threads of the JVM's own go about their business
// meanwhile: where one differs, dump and witness are repeated. One that stands still must agree at
// once.
func hear(t *testing.T, s *session.Session, still []jvmtest.ExpectedStack, name string,
	witness func(*testing.T, []dumpedThread) (*hearing, error)) {
	t.Helper()
	for try := 1; ; try++ {
		ours := withCarriers(dumpedParked(t, s, still, session.DumpOptions{}))
		begun := time.Now()
		heard, err := witness(t, ours)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		t.Logf("%s: %s (%.1f s)", name, heard.told, time.Since(begun).Seconds())
		wrong, brief := "", ""
		for _, tid := range slices.Sorted(maps.Keys(heard.against)) {
			i := slices.IndexFunc(ours, func(th dumpedThread) bool { return th.TID == tid })
			if i < 0 {
				if !begunByWitness(s, tid) {
					why := fmt.Sprintf("\nthread %d: %s", tid, heard.against[tid])
					wrong, brief = wrong+why, brief+why
				}
				continue
			}
			th := &ours[i]
			why := fmt.Sprintf("\n%s, thread %d: %s\n%s", th.Name, tid, heard.against[tid], dumpedText(th))
			if slices.ContainsFunc(still, func(s jvmtest.ExpectedStack) bool { return s.Thread == th.Name }) {
				t.Errorf("%s:%s", name, why)
			} else {
				wrong += why
				brief += fmt.Sprintf("\n%s: %s", th.Name, heard.against[tid])
			}
		}
		if wrong == "" {
			return
		}
		if try == 10 {
			t.Errorf("%s: after %d tries:%s", name, try, wrong)
			return
		}
		t.Logf("%s: once more, these have moved or are wrong:%s", name, brief)
	}
}

// begunByWitness: the JVM answers jcmd on a thread that it makes when first asked.
func begunByWitness(s *session.Session, tid int) bool {
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", s.Process.PID(), tid))
	return err == nil && strings.TrimSpace(string(comm)) == "Attach Listener"
}

// hearJava compares all Java threads with what a tool of the JDK says.
func hearJava(reader *witnessText, text []byte, ours []dumpedThread) (*hearing, error) {
	theirs, err := reader.threads(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	carriers := 0
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
		if w.mounted > 0 {
			carriers++
		}
		compared := w.frames[:min(len(w.frames), len(javaOf(&ours[n])))]
		frames += len(compared)
		for _, f := range compared {
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
	h.told = fmt.Sprintf("%d threads agree, %d Java frames, %d of them with lines", len(theirs)-len(h.against), frames,
		lines)
	if carriers > 0 {
		h.told += fmt.Sprintf("; %d carry virtual threads, of which the witness shows no %s, but frames in the heap",
			carriers, enterSpecial)
	}
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
	h.told = fmt.Sprintf("%d threads agree, %d native frames, %d threads to their roots", judge.threads, judge.frames,
		judge.whole)
	for _, way := range slices.Sorted(maps.Keys(judge.ways)) {
		h.told += fmt.Sprintf("; %s: %d", way, judge.ways[way])
	}
	return h, nil
}

// askLimit is how long a witness may take: jhsdb sometimes hangs.
var askLimit = jvmtest.Slow(90 * time.Second)

// ask runs a tool on a JVM and returns what it says. One that hangs is killed, and asked again.
func ask(t *testing.T, pid int, tool string, args ...string) ([]byte, error) {
	t.Helper()
	var err error
	for range 5 {
		var text []byte
		if text, err = askOnce(pid, tool, args); err == nil {
			return text, nil
		}
		t.Logf("%v", err)
	}
	return nil, fmt.Errorf("no answer in five tries: %w", err)
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
