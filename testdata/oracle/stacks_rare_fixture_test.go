//go:build linux

package oracle

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/testdata/captured"
	"goprof/testdata/jvmtest"
	"goprof/unwind"
	"goprof/vmstructs"
)

// rarePlace is code in which single steps have found a wrong walk, and that samples hardly ever meet.
type rarePlace struct {
	name string
	is   func(m *moment) bool
	want int // different pcs
}

func rarePlaces() []*rarePlace {
	inCodelet := func(name string) func(m *moment) bool {
		return func(m *moment) bool { return m.where.what == inInterpreter && strings.Contains(m.where.name, name) }
	}
	on := func(name string) func(m *moment) bool {
		return func(m *moment) bool { return m.where.what != inInterpreter && strings.Contains(m.where.name, name) }
	}
	return []*rarePlace{
		{name: "crc32", want: 3, is: inCodelet("CRC32")},
		// The entry of a method that compiled code has called: the whole of it.
		{name: "entry", want: 24, is: func(m *moment) bool {
			return m.where.isEntry() &&
				calledBy(m, profile.C1, profile.C2)
		}},
		{name: "if", want: 2, is: func(m *moment) bool {
			return m.where.what == inInterpreter && strings.HasPrefix(m.where.name, "if") && calledBy(m, profile.C1, profile.C2)
		}},
		{name: "throwing", want: 18, is: inCodelet("exception handling")},
		{name: "asks for handler", want: 4, is: func(m *moment) bool { return asksForHandler(&m.walk) }},
		{name: "math stub", want: 6, is: func(m *moment) bool {
			return len(m.frames) > 1 && strings.HasPrefix(m.frames[1].owner().Func.Name, "Interpreter (")
		}},
		{name: "fmod", want: 6, is: on("fmod")}, // of JDK 21 and later
		{name: "copy loop", want: 4, is: on("_Copy_")},
		{name: "deopt", want: 60, is: func(m *moment) bool { return m.where.what == vmstructs.Deopt.String() }},
	}
}

// maxRecording is how long one JVM is stepped; GOPROF_RECORD_SECONDS gives a slow machine more.
func maxRecording() time.Duration {
	seconds, err := strconv.Atoi(os.Getenv("GOPROF_RECORD_SECONDS"))
	if err != nil {
		seconds = 75
	}
	return time.Duration(seconds) * time.Second
}

// calledBy reports whether the caller of the frame on top is of one of the kinds.
func calledBy(m *moment, kinds ...profile.Kind) bool {
	return len(m.frames) > 1 && slices.Contains(kinds, m.frames[1].owner().Kind)
}

// rareFlags are those of the mode "mixed", with methods kept interpreted whose code is wanted.
func rareFlags() []string {
	flags := append(slices.Clone(stepFlags), stepModes[0].flags...)
	for _, method := range []string{"truth/Steps.fibonacci", "truth/Steps.math", "truth/Steps.checksums",
		"truth/Steps.copies", "java/util/zip/CRC32.*"} {
		flags = append(flags, "-XX:CompileCommand=exclude,"+method)
	}
	return flags
}

// TestRecordRareWalks makes the recordings of unwind/testdata/rare. It is run by hand:
//
//	GOPROF_RECORD_WALKS=1 go test ./testdata/oracle -run TestRecordRareWalks -v
//
// The thread is stepped, so that a walk that the instructions do not explain is not recorded. A run
// does not meet all places; those of one JDK and of the other together must have each
// (unwind/rare_test.go).
func TestRecordRareWalks(t *testing.T) {
	wantedWalks(t) // any number
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		lockThread(t)
		jvm := jvmtest.Start(t, jdk, "truth.Steps", rareFlags()...)
		s := attach(t, jvm.PID)
		s.Walker.Warm()
		r := rareRecorder{places: rarePlaces(), seen: map[uint64]bool{}}
		r.t, r.s, r.count = t, s, newStepCount()
		tid, hint := steppedThread(t, s)
		r.st, r.hint = &stepper{p: s.Process, tid: tid}, hint
		r.rec, r.walker = recorderOf(t, s.Process)
		for end := time.Now().Add(maxRecording()); !r.done() && time.Now().Before(end); {
			r.round()
		}
		for _, p := range r.places {
			t.Logf("%s: %d more wanted", p.name, p.want)
		}
		saveWalks(t, r.rec, walksFile(t, "rare", "rare", jdk))
	})
}

type rareRecorder struct {
	stepping
	rec    *captured.Recorder
	walker *unwind.Walker
	places []*rarePlace
	seen   map[uint64]bool
}

func (r *rareRecorder) done() bool {
	return !slices.ContainsFunc(r.places, func(p *rarePlace) bool { return p.want > 0 })
}

// round makes some steps.
func (r *rareRecorder) round() {
	_, err := r.look()
	if err == nil {
		err = r.stepOn(4 * stretch)
	}
	if err = errors.Join(err, r.st.resume()); err != nil {
		r.t.Fatal(err)
	}
	pause(r.count.steps)
}

func (r *rareRecorder) stepOn(n int) error {
	before, after := &r.moments[0], &r.moments[1]
	for range n {
		if err := r.st.step(); errors.Is(err, errBlocked) {
			return nil
		} else if err != nil {
			return err
		}
		if err := after.take(r.s, r.st, r.hint); err != nil {
			return err
		}
		if before.why == profile.Whole && after.why == profile.Whole {
			if _, err := judge(before, after); err == nil {
				r.keep(after)
			}
		}
		r.count.steps++
		before, after = after, before
	}
	return nil
}

// keep records the walk of a moment that is wanted.
func (r *rareRecorder) keep(m *moment) {
	for _, p := range r.places {
		if p.want == 0 || r.seen[m.pc] || !p.is(m) {
			continue
		}
		p.want--
		r.seen[m.pc] = true
		r.rec.Begin(&m.snap)
		var stack profile.Stack
		r.walker.Walk(&m.snap, &stack)
	}
}
