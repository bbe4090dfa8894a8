//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/output/recording"
	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// phase is what the program says that it did, by System.nanoTime(), and when that ended by System.currentTimeMillis().
type phase struct {
	name     string
	from, to int64
	wall     int64
}

func phasesOf(t *testing.T, jvm *jvmtest.JVM) (all []phase) {
	t.Helper()
	for _, line := range jvm.Command("phases") {
		var p phase
		if _, err := fmt.Sscan(line, &p.name, &p.from, &p.to, &p.wall); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, p)
	}
	return all
}

// mostApart bounds by how much the wall clock of a sample may differ from the program's, which counts milliseconds and
// is read some time behind the phase, on a machine with other work.
const mostApart = 100 * time.Millisecond

// TestTimesAreThePrograms: the time of a sample is the program's own System.nanoTime(): a sample in a method is of a
// time at which the program says that it was there. Its wall time fits, too.
func TestTimesAreThePrograms(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Phases")
		right, wrong := 0, 0
		for tries := 0; tries < recordTries && right < 50 && wrong == 0; tries++ { // a starved machine gives few samples
			name := filepath.Join(t.TempDir(), "x.jfr")
			record(t, jvm.PID, name, "-d", "2", "-r", "200")
			r, w := inPhase(t, name, phasesOf(t, jvm))
			right, wrong = right+r, wrong+w
		}
		if wrong > 0 || right < 50 {
			t.Errorf("%d samples are of the phase of their time, %d are not", right, wrong)
		}
	})
}

// inPhase counts the samples in the method of their phase, and those in the other one.
func inPhase(t *testing.T, name string, phases []phase) (right, wrong int) {
	t.Helper()
	f, err := recording.Open(name, recording.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Each(func(s *profile.Sample) error {
		for i := range phases {
			p := &phases[i]
			if s.At.Ticks < p.from || s.At.Ticks >= p.to || !runs(s, "Phases.hot") && !runs(s, "Phases.cold") {
				continue
			}
			if !runs(s, "Phases."+p.name) {
				wrong++
				continue
			}
			right++
			if apart := time.Duration((p.wall*1e6 - s.At.Wall) - (p.to - s.At.Ticks)).Abs(); apart > mostApart {
				t.Errorf("a sample's wall time is %v away from the program's", apart)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return right, wrong
}

// runs reports whether a sample has a frame of a method.
func runs(s *profile.Sample, method string) bool {
	for i := range s.Stack.Frames {
		if strings.HasSuffix(s.Stack.Frames[i].Func.Name, method) {
			return true
		}
	}
	return false
}
