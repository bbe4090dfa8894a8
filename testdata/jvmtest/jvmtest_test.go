//go:build linux

package jvmtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestClasses also tells other machines where the classes are (scripts/test-arm64.sh).
func TestClasses(t *testing.T) {
	dir := Classes(t)
	if _, err := os.Stat(filepath.Join(dir, "truth", "Shadow.class")); err != nil {
		t.Error(err)
	}
	t.Logf("classes are in %s", dir)
}

func TestKinds(t *testing.T) {
	modes := map[string][]string{
		"as named":    KindsFlags,
		"interpreter": append([]string{"-Xint"}, KindsFlags...),
		"no flags":    nil,
	}
	for _, mode := range Drawn(t, 1, slices.Sorted(maps.Keys(modes))) { // TestKinds of oracle has them all
		flags := modes[mode]
		t.Run(mode, func(t *testing.T) {
			ForNewestJDK(t, func(t *testing.T, jdk JDK) {
				jvm := Start(t, jdk, "truth.Kinds", flags...)
				stacks, err := ParseStacks(jvm.Command("stacks"))
				if err != nil {
					t.Fatal(err)
				}
				inlined := find1(t, stacks, "c2-inlined")
				if !inlined.Parked || inlined.Frames[0].Line != NativeLine || inlined.Frames[3].Method != "truth.Parked.inlinedD" {
					t.Errorf("c2-inlined: %v", inlined.Frames)
				}
				if deep := find1(t, stacks, "deep-recursion"); len(deep.Frames) < 900 {
					t.Errorf("deep-recursion has only %d frames", len(deep.Frames))
				}
				if crc := find1(t, stacks, "spin-crc32"); crc.Parked || len(crc.Frames) != 3 {
					t.Errorf("spin-crc32: %v", crc)
				}
			})
		})
	}
}

func find1(t *testing.T, stacks []ExpectedStack, thread string) ExpectedStack {
	t.Helper()
	i := slices.IndexFunc(stacks, func(s ExpectedStack) bool { return s.Thread == thread })
	if i < 0 {
		t.Fatalf("no thread %s", thread)
	}
	return stacks[i]
}

func TestSharesSumToOne(t *testing.T) {
	ForNewestJDK(t, func(t *testing.T, jdk JDK) {
		jvm := Start(t, jdk, "truth.Shares", "--", "2")
		jvm.Command("mark")
		for {
			var truth struct {
				Slices int
				Shares map[string]float64
			}
			if err := json.Unmarshal([]byte(jvm.Command("truth")[0]), &truth); err != nil {
				t.Fatal(err)
			}
			if truth.Slices < 1000 {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			sum := 0.0
			for name, share := range truth.Shares {
				sum += share
				if name != "other" && share < 0.005 {
					t.Errorf("%s has a share of only %.4f", name, share)
				}
			}
			if len(truth.Shares) != 13 || math.Abs(sum-1) > 0.01 {
				t.Errorf("%d shares, sum %.3f: %v", len(truth.Shares), sum, truth.Shares)
			}
			return
		}
	})
}

func TestOtherProgramsVerifyThemselves(t *testing.T) {
	ForNewestJDK(t, func(t *testing.T, jdk JDK) {
		t.Run("JavacLoop", func(t *testing.T) {
			if !jdk.hasCompiler() {
				t.Skip("no compiler in this JDK")
			}
			Start(t, jdk, "truth.JavacLoop", "--", "3", "40").Quit()
		})
		t.Run("ManyClasses", func(t *testing.T) {
			jvm := Start(t, jdk, "truth.ManyClasses", "--", "2000")
			if rounds, err := strconv.Atoi(jvm.Command("rounds")[0]); err != nil || rounds == 0 {
				t.Errorf("rounds: %v, %v", rounds, err)
			}
		})
		t.Run("Churn", func(t *testing.T) {
			jvm := Start(t, jdk, "truth.Churn", "-XX:ReservedCodeCacheSize=6m")
			if counts := strings.Fields(jvm.Command("counts")[0]); len(counts) != 5 || slices.Contains(counts[:4], "0") {
				t.Errorf("counts: %v", counts)
			}
		})
		t.Run("Demo", func(t *testing.T) {
			line := CommandLine(t, jdk, "demo.Demo", "--", "1")
			out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), " orders, ") {
				t.Errorf("%v: %s", err, out)
			}
		})
	})
}

func TestStartedJVMsAreReaped(t *testing.T) {
	var pid int
	t.Run("running", func(t *testing.T) { pid = Start(t, JDKs(t)[0], "truth.ManyClasses", "--", "10").PID })
	if pid == 0 {
		t.Skip("no JVM was started")
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); !os.IsNotExist(err) {
		t.Errorf("pid %d is still there: %v", pid, err)
	}
}

// A wrong result must fail the test. Otherwise no test would ever notice that a profiler does harm.
func TestFailedVerificationIsSeen(t *testing.T) {
	jvm := Start(t, JDKs(t)[0], "truth.ManyClasses", "--", "10")
	if _, err := jvm.ask("no such command"); err == nil || !strings.Contains(err.Error(), "no such command") {
		t.Errorf("a failed command gave %v", err)
	}
	jvm.Kill()
	if _, err := jvm.ask("rounds"); err == nil {
		t.Error("a dead program answered")
	}
}

// The test binary starts a copy of itself. The copy starts a JVM. The test kills the copy.
func TestJVMDiesWithItsTest(t *testing.T) {
	const child = "GOPROF_JVMTEST_CHILD"
	if os.Getenv(child) != "" {
		jvm := Start(t, JDKs(t)[0], "truth.ManyClasses", "--", "10")
		fmt.Printf("pid=%d\n", jvm.PID)
		time.Sleep(time.Hour) // until this process is killed
	}
	Classes(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestJVMDiesWithItsTest$")
	cmd.Env = append(os.Environ(), child+"=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanf(stdout, "pid=%d\n", &pid); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // the error "killed" is expected
	if pid == 0 {
		t.FailNow()
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if gone(pid) {
			return
		}
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("JVM %d outlived its test", pid)
		}
	}
}

// gone tells whether the process has ended. Its new parent may not have reaped it yet.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

func TestFindJDKs(t *testing.T) {
	dir := t.TempDir()
	fake := func(name, release string) string {
		home := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(home, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(home, "bin", "java"), "#!/bin/sh\n", 0o755)
		write(t, filepath.Join(home, "release"), "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\""+release+"\"\n", 0o644)
		return home
	}
	eight, new25 := fake("eight", "1.8.0_402"), fake("new", "25.0.3")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(new25, link); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	got := fmt.Sprint(inspectAll([]string{link, new25, eight, empty, ""}))
	if got != "[jdk8 jdk25]" {
		t.Errorf("found %s", got)
	}
	list, err := parseList("25=" + new25 + ":8=" + eight)
	if err != nil || fmt.Sprint(list) != "[jdk8 jdk25]" || list[0].Release != "1.8.0_402" {
		t.Errorf("list: %v, %v", list, err)
	}
	for _, bad := range []string{"x", "17", "17=" + empty, "x=" + eight} {
		if _, err := parseList(bad); err == nil {
			t.Errorf("GOPROF_JDKS=%q is taken", bad)
		}
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestMajorOf(t *testing.T) {
	for release, want := range map[string]int{"1.8.0_402": 8, "17.0.15": 17, "25": 25, "26-ea": 26, "": 0, "x": 0} {
		if got := majorOf(release); got != want {
			t.Errorf("%q: %d, not %d", release, got, want)
		}
	}
}

func TestLineNumbersArePutIn(t *testing.T) {
	in := "a\ns.at(__LINE__); int __LINE__ = 0;\nimport static X.__LINE__;\ncheck(__LINE__ != 0)\n"
	want := "a\ns.at(2); int __LINE__ = 0;\nimport static X.__LINE__;\ncheck(4 != 0)\n"
	if got := withLineNumbers(in); got != want {
		t.Errorf("got %q", got)
	}
}
