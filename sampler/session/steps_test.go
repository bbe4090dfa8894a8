//go:build linux && amd64

package session

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/testdata/jvmtest"
)

// stepModes are the ways to run truth.Steps.
var stepModes = []struct {
	name  string
	flags []string
}{
	{name: "mixed"},
	{name: "interpreted", flags: []string{"-Xint"}},
	{name: "c1", flags: []string{"-XX:TieredStopAtLevel=1"}},
}

// stepFlags are those of all modes.
var stepFlags = []string{
	"-XX:CompileCommand=quiet",
	"-XX:CompileCommand=dontinline,truth/Steps.leaf*",
	"-XX:CompileCommand=exclude,truth/Steps.excluded*",
	"-XX:PerMethodRecompilationCutoff=1000000",
}

const (
	// stretch is how many steps are made before the thread may run on freely for a moment,
	// so that other code is met.
	stretch = 500
	// maxShown is how many violations of a mode are printed.
	maxShown = 4
	// deoptSteps is more than one deoptimisation takes, in which walks may be cut short.
	deoptSteps = 150
)

// TestSteps steps a Java thread and holds every walk against what the instruction did. All JVMs
// and modes together make 200,000 steps; the long form is
//
//	GOPROF_STEPS=5000000 go test ./sampler/session -run 'TestSteps$' -v -timeout 2h
//
// What explains each step is printed, with all regions (steps_regions_test.go) and their counts.
// GOPROF_SHOW=1 prints walks that did not reach their root, too.
func TestSteps(t *testing.T) {
	steps := 200_000
	if n, _ := strconv.Atoi(os.Getenv("GOPROF_STEPS")); n > 0 {
		steps = n
	}
	each := steps/(len(jvmtest.JDKs(t))*len(stepModes)) + 1
	total := newStepCount()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, mode := range stepModes {
			t.Run(mode.name, func(t *testing.T) { total.add(stepRun(t, jdk, mode.flags, each)) })
		}
	})
	t.Logf("together: %v", total)
	if cut := total.truncatedSum(); cut > total.steps/2000+deoptSteps {
		t.Errorf("%d of %d walks are cut short, more than 0.05 %%", cut, total.steps)
	}
}

func stepRun(t *testing.T, jdk jvmtest.JDK, flags []string, steps int) *stepCount {
	lockThread(t)
	jvm := jvmtest.Start(t, jdk, "truth.Steps", append(slices.Clone(stepFlags), flags...)...)
	s := attach(t, jvm.PID)
	s.walker.Warm()
	tid := steppedThread(t, s)
	run := stepping{t: t, s: s, st: &stepper{p: s.Process, tid: tid}, hint: s.dir.threads[tid].hint(s.VM), count: newStepCount()}
	began := time.Now()
	for i := 0; run.count.steps < steps; i++ {
		if err := run.stretch(min(stretch, steps-run.count.steps)); err != nil {
			t.Fatal(err)
		}
		pause(i)
	}
	t.Logf("%.0f steps a second; %v", float64(steps)/time.Since(began).Seconds(), run.count)
	return run.count
}

func steppedThread(t *testing.T, s *Session) int {
	t.Helper()
	if err := s.dir.refresh(); err != nil {
		t.Fatal(err)
	}
	for tid, th := range s.dir.threads {
		if th.name == "stepped" && th.java.Addr != 0 {
			return tid
		}
	}
	t.Fatal("no thread \"stepped\"")
	return 0
}

// stepping is a thread that is stepped, and what has become of its steps.
type stepping struct {
	t       *testing.T
	s       *Session
	st      *stepper
	hint    sampler.Hint
	moments [2]moment
	count   *stepCount
	shown   int
}

// stretch makes n steps, fewer if the thread blocks.
func (r *stepping) stretch(n int) error {
	if err := r.st.stop(); err != nil {
		return err
	}
	defer r.st.resume()
	before, after := &r.moments[0], &r.moments[1]
	if err := before.take(r.s, r.st, r.hint); err != nil {
		return err
	}
	for range n {
		err := r.st.step()
		if errors.Is(err, errBlocked) {
			r.count.blocked++
			return nil
		}
		if err != nil {
			return err
		}
		if err := after.take(r.s, r.st, r.hint); err != nil {
			return err
		}
		r.judge(before, after)
		before, after = after, before
	}
	return nil
}

func (r *stepping) judge(before, after *moment) {
	c := r.count
	c.steps++
	if after.why != profile.Whole {
		c.truncated[after.why]++
		if os.Getenv("GOPROF_SHOW") != "" {
			r.show("cut short", before, after)
		}
	}
	if before.why != profile.Whole || after.why != profile.Whole {
		return
	}
	c.judged++
	c.noteSlots(after)
	by, err := judge(before, after)
	if err != nil {
		c.violations++
		r.t.Fail()
		r.show("VIOLATION: "+err.Error(), before, after)
		return
	}
	c.by[by]++
}

func (r *stepping) show(what string, before, after *moment) {
	if r.shown++; r.shown <= maxShown {
		r.t.Logf("%s\nbefore: %vafter: %v", what, before, after)
	}
}

// stepCount is what has become of steps.
type stepCount struct {
	steps, judged, blocked, violations int
	by                                 map[string]int // explanations
	truncated                          [profile.NumReasons]int
	callers, lost                      int // callers' return addresses, and those not found on the stack
}

func newStepCount() *stepCount { return &stepCount{by: map[string]int{}} }

func (c *stepCount) add(d *stepCount) {
	c.steps, c.judged, c.blocked = c.steps+d.steps, c.judged+d.judged, c.blocked+d.blocked
	c.violations, c.callers, c.lost = c.violations+d.violations, c.callers+d.callers, c.lost+d.lost
	for by, n := range d.by {
		c.by[by] += n
	}
	for why, n := range d.truncated {
		c.truncated[why] += n
	}
}

// noteSlots counts return addresses that the judge cannot hold to their place.
func (c *stepCount) noteSlots(m *moment) {
	for i := 1; i < len(m.frames); i++ {
		c.callers++
		if m.frames[i].slot == 0 {
			c.lost++
		}
	}
}

func (c *stepCount) truncatedSum() (sum int) {
	for _, n := range c.truncated {
		sum += n
	}
	return sum
}

func (c *stepCount) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d steps, %d judged, %d violations, %d cut short", c.steps, c.judged, c.violations, c.truncatedSum())
	for why, n := range c.truncated {
		if n > 0 {
			fmt.Fprintf(&b, " (%v: %d)", profile.Reason(why), n)
		}
	}
	fmt.Fprintf(&b, ", %d times blocked, %.3f %% of return addresses not held to a place",
		c.blocked, 100*float64(c.lost)/float64(max(c.callers, 1)))
	for _, by := range explanations() {
		fmt.Fprintf(&b, "\n%10d  %s", c.by[by], by)
	}
	return b.String()
}

// explanations lists all that a step can be explained by.
func explanations() []string {
	names := []string{byNothing, byCall, byReturn}
	for _, r := range regions {
		names = append(names, r.name)
	}
	return names
}
