//go:build linux

package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// walksFile is the place of a recording: by kind on amd64, all of another CPU's in a folder of its own
// (unwind/arm64_test.go replays them).
func walksFile(t *testing.T, kind, name string, jdk jvmtest.JDK) string {
	t.Helper()
	dir, file := kind, fmt.Sprintf("%s-%v-%s.walks", name, jdk, runtime.GOARCH)
	if runtime.GOARCH != "amd64" {
		dir, file = runtime.GOARCH, fmt.Sprintf("%s-%v%s.walks", name, jdk, signs())
	}
	dir = filepath.Join("..", "..", "unwind", "testdata", dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, file)
}

// signs is "-pauth" on a CPU with pointer authentication.
func signs() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	if strings.Contains(string(info), " paca ") {
		return "-pauth"
	}
	return ""
}

// TestRecordKinds makes recordings of threads that stand still in every kind of frame, of which each is what the
// program says. It is run by hand, on arm64:
//
//	GOPROF_RECORD_WALKS=1 session.test -test.run TestRecordKinds
//
// With GOPROF_RECORD_FLAGS the JVM gets these flags as well, and the file the name of the last one.
func TestRecordKinds(t *testing.T) {
	if n, _ := strconv.Atoi(os.Getenv("GOPROF_RECORD_WALKS")); n == 0 || runtime.GOARCH == "amd64" {
		t.Skip("makes fixtures of arm64: set GOPROF_RECORD_WALKS there")
	}
	more := strings.Fields(os.Getenv("GOPROF_RECORD_FLAGS"))
	name := "kinds"
	for _, flag := range more {
		name = "kinds-" + strings.Trim(flag[strings.IndexAny(flag, "+=")+1:], "-:")
	}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Kinds", slices.Concat(more, jvmtest.KindsFlags, []string{"--", "parked"})...)
		stacks, err := jvmtest.ParseStacks(jvm.Command("stacks"))
		if err != nil {
			t.Fatal(err)
		}
		s := attach(t, jvm.PID)
		threads, err := s.Threads()
		if err != nil {
			t.Fatal(err)
		}
		rec, w := recorderOf(t, s.Process)
		recorded := 0
		for tid, th := range threads {
			for _, want := range stacks {
				if th.Name != want.Thread || strings.HasPrefix(want.Thread, "deep-") { // one such is as large as all others
					continue
				}
				var stack profile.Stack
				err := stopped(s.Process, tid, th.Hint, func(snap *process.Snapshot) {
					rec.Begin(snap)
					w.Walk(snap, &stack)
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := want.Compare(javaFrames(&stack)); err != nil || stack.Truncated != profile.Whole {
					t.Errorf("%v %v", stack.Truncated, err)
				}
				recorded++
			}
		}
		t.Logf("%d threads", recorded)
		saveWalks(t, rec, walksFile(t, "kinds", name, jdk))
	})
}

func javaFrames(st *profile.Stack) (frames []jvmtest.ShadowFrame) {
	for _, f := range st.Frames {
		if f.Kind.Java() {
			frames = append(frames, jvmtest.ShadowFrame{Method: f.Func.Name, Line: int(f.Line)})
		}
	}
	return frames
}
