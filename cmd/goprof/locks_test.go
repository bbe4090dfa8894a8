//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"goprof/cmd/goprof/exit"
	"goprof/testdata/jvmtest"
)

// lockAnswer is the output of "goprof locks --json", as a user's program would read it.
type lockAnswer struct {
	Deadlocks [][]struct {
		TID      int
		Name     string
		Virtual  uint64
		WaitsFor struct{ Class, ID string } `json:"waits_for"`
		Owner    int

		OwnerVirtual uint64 `json:"owner_virtual"`
	}
	Threads []struct {
		TID     int
		Name    string
		Virtual uint64
		Holds   []struct {
			Class, ID, Kind string
			Frame           *int
		}
		WaitsFor *struct {
			Class, ID, Kind, How string
			Timed                bool
			Owner                int
			OwnerVirtual         uint64 `json:"owner_virtual"`
		} `json:"waits_for"`
	}
}

// TestLocksCommand: a deadlock has its own exit code. Each of its threads names the next one as the owner of the
// lock that it waits for, and the next one holds that lock. The same holds for a stopped JVM, which stays stopped.
func TestLocksCommand(t *testing.T) {
	jdk := jvmtest.JDKs(t)[0]
	// with seed 1, four of the six are in a deadlock
	jvm := jvmtest.Start(t, jdk, "truth.LocksGraph", "--", "1", "6", "mrw", "0")
	pid := strconv.Itoa(jvm.PID)
	syscall.Kill(jvm.PID, syscall.SIGSTOP)
	defer syscall.Kill(jvm.PID, syscall.SIGCONT)
	out, code := locksOutput(t, pid, "--json")
	if code != exit.Deadlocked {
		t.Fatalf("exit code %d: %s", code, out)
	}
	var answer lockAnswer
	in := json.NewDecoder(bytes.NewReader(out))
	in.DisallowUnknownFields()
	if err := in.Decode(&answer); err != nil {
		t.Fatal(err)
	}
	holds := map[string]int{}
	for _, th := range answer.Threads {
		for _, h := range th.Holds {
			holds[h.ID] = th.TID
		}
	}
	if len(answer.Deadlocks) == 0 {
		t.Fatal("no deadlock in the answer")
	}
	for _, cycle := range answer.Deadlocks {
		for i, th := range cycle {
			next := cycle[(i+1)%len(cycle)]
			if th.Owner != next.TID || holds[th.WaitsFor.ID] != next.TID || th.WaitsFor.Class == "" {
				t.Errorf("%+v does not wait for %+v, or that one does not hold it", th, next)
			}
		}
	}
	text, code := locksOutput(t, pid)
	if code != exit.Deadlocked || !strings.Contains(string(text), "DEADLOCK 1 of 1") {
		t.Errorf("exit code %d: %s", code, text)
	}
}

// TestNoDeadlock: exit code 0.
func TestNoDeadlock(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	out, code := locksOutput(t, strconv.Itoa(jvm.PID), "--json", "--nonblocking")
	if code != exit.OK || !bytes.HasPrefix(out, []byte(`{"deadlocks":[],"threads":[`)) {
		t.Errorf("exit code %d: %.200s", code, out)
	}
}

// TestReaderBehindTimedWriter: readers hold a lock. A writer waits for them, and another reader waits behind that
// writer. That is a deadlock only if the writer never gives up.
func TestReaderBehindTimedWriter(t *testing.T) {
	jdk := jvmtest.JDKs(t)[0]
	for how, want := range map[string]exit.Code{"timed": exit.OK, "endless": exit.Deadlocked} {
		jvm := jvmtest.Start(t, jdk, "truth.TimedWriter", "--", how)
		out, code := locksOutput(t, strconv.Itoa(jvm.PID))
		if code != want || !bytes.Contains(out, []byte(`"reader"`)) {
			t.Errorf("%s: exit code %d: %s", how, code, out)
		}
	}
}

// TestUpgrade: a thread that wants to write what it reads itself is in a deadlock with itself, unless it gives up in
// time.
func TestUpgrade(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for how, want := range map[string]exit.Code{"timed": exit.OK, "endless": exit.Deadlocked} {
			jvm := jvmtest.Start(t, jdk, "truth.Upgrade", "--", how)
			out, code := locksOutput(t, strconv.Itoa(jvm.PID))
			if code != want || !bytes.Contains(out, []byte("1 thread behind it")) {
				t.Errorf("%s: exit code %d: %s", how, code, out)
			}
			if want == exit.Deadlocked && !bytes.Contains(out, []byte("a thread that waits for itself\n  \"upgrader\"")) {
				t.Errorf("%s", out)
			}
		}
	})
}

func locksOutput(t *testing.T, args ...string) ([]byte, exit.Code) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "goprof", append([]string{"locks"}, args...)...)
	out, err := cmd.Output()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return out, exit.Code(cmd.ProcessState.ExitCode())
}
