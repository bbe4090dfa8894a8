//go:build linux

package oracle

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
	"goprof/sampler/ptrace"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// stepModes are the ways to run truth.Steps.
var stepModes = []struct {
	name  string
	flags []string
}{
	{name: "mixed", flags: []string{ // C2 soon, and all its traps for ever
		"-XX:Tier4InvocationThreshold=500", "-XX:Tier4MinInvocationThreshold=100", "-XX:Tier4CompileThreshold=1000",
		"-XX:Tier4BackEdgeThreshold=2000", "-XX:PerMethodTrapLimit=100000", "-XX:PerBytecodeTrapLimit=100000",
	}},
	{name: "interpreted", flags: []string{"-Xint"}},
	{name: "c1", flags: []string{"-XX:TieredStopAtLevel=1"}},
}

// stepFlags are those of all modes.
var stepFlags = []string{
	"-XX:+IgnoreUnrecognizedVMOptions",
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
	// maxCutShown is how many walks that were cut short are, if asked for.
	maxCutShown = 60
	// deoptSteps is more than one deoptimisation takes, in which walks may be cut short.
	deoptSteps = 150
)

// TestSteps steps a Java thread and holds every walk against what the instruction did. All JVMs
// and modes together make 30,000 steps; the long form is
//
//	GOPROF_STEPS=5000000 go test ./testdata/oracle -run 'TestSteps$' -v -timeout 2h
//
// What explains each step is printed, with all regions (steps_regions_test.go) and their counts.
// GOPROF_SHOW=1 prints walks that did not reach their root, too.
func TestSteps(t *testing.T) {
	t.Parallel()
	steps := 30_000
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
	flags = append(slices.Clone(stepFlags), flags...)
	if os.Getenv("GOPROF_EMULATED") != "" { // it would hardly get ready, nor anywhere
		flags = append(flags, "--", "1", "200", "30")
	}
	jvm := jvmtest.Start(t, jdk, "truth.Steps", flags...)
	s := attach(t, jvm.PID)
	s.Walker.Warm()
	tid, hint := steppedThread(t, s)
	run := stepping{t: t, s: s, st: &stepper{p: s.Process, tid: tid}, hint: hint, count: newStepCount()}
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

func steppedThread(t *testing.T, s *session.Session) (tid int, hint ptrace.Hint) {
	t.Helper()
	threads, err := s.Threads()
	if err != nil {
		t.Fatal(err)
	}
	for tid, th := range threads {
		if th.Name == "stepped" && th.Java.Addr != 0 {
			return tid, th.Hint
		}
	}
	t.Fatal("no thread \"stepped\"")
	return 0, hint
}

// stepping is a thread that is stepped, and what has become of its steps.
type stepping struct {
	t         *testing.T
	s         *session.Session
	st        *stepper
	hint      ptrace.Hint
	moments   [3]moment
	whole     *moment // the last one before walks that are cut short
	count     *stepCount
	stretches int
}

// rareCode are parts of the names of functions and stubs in which a thread is rarely, and by which
// frames come and go; and how many steps it is followed there, at most.
var rareCode = []struct {
	part  string
	steps int
}{
	{"DeoptimizationBlob", 60_000}, {"UncommonTrapBlob", 60_000}, {"counter_overflow", 1500}, {"exception_handler", 3000},
	{"ExceptionBlob", 3000}, {"SafepointBlob", 2000}, {"wrong_method", 2000}, {"ic_miss", 2000}, {"resolve_", 2000},
	{"freeze", 2000}, {"thaw", 2000}, {"cont_", 2000},
}

// rare returns how many steps a thread is to be followed where it is.
func rare(m *moment) (steps int) {
	for _, p := range m.frames {
		for _, code := range rareCode {
			if strings.Contains(p.owner().Func.Name, code.part) {
				steps = max(steps, code.steps)
			}
		}
	}
	return steps
}

// maxLooks is how often a thread is looked at in the hope to meet it in rare code.
const maxLooks = 40

// stretch makes n steps, fewer if the thread blocks. Every other one begins in rare code, if that
// is met, and goes on to its end.
func (r *stepping) stretch(n int) error {
	r.stretches++
	looks := 1
	if r.stretches%2 == 0 {
		looks = maxLooks
	}
	for ; ; looks-- {
		isRare, err := r.look()
		if err == nil && (isRare || looks <= 1) {
			err = r.steps(n)
			return errors.Join(err, r.st.resume())
		}
		if err := errors.Join(err, r.st.resume()); err != nil {
			return err
		}
		pause(r.stretches * looks)
	}
}

// look stops the thread, and reports whether it is in rare code.
func (r *stepping) look() (isRare bool, err error) {
	if err := r.st.stop(); err != nil {
		return false, err
	}
	err = r.moments[0].take(r.s, r.st, r.hint)
	return rare(&r.moments[0]) > 0, err
}

// steps makes n steps, and more while the thread is in rare code.
func (r *stepping) steps(n int) error {
	before, after, spare := &r.moments[0], &r.moments[1], &r.moments[2]
	r.whole = nil
	for i := 0; i < n || i < rare(before); i++ {
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
		switch wasWhole, isWhole := before.why == profile.Whole, after.why == profile.Whole; {
		case wasWhole && !isWhole:
			r.whole = before
			before, after = after, spare
		case r.whole != nil && isWhole:
			spare, before, after = before, after, r.whole
			r.whole = nil
		default:
			before, after = after, before
		}
	}
	return nil
}

func (r *stepping) judge(before, after *moment) {
	c := r.count
	c.steps++
	if after.why != profile.Whole {
		c.truncated[after.why]++
		if os.Getenv("GOPROF_SHOW") != "" && c.truncatedSum() <= maxCutShown {
			r.t.Logf("cut short\nbefore: %vafter: %v%s", before, after, r.surroundings(after))
		}
		if before.why == profile.Whole {
			r.violated(judgeCut(before, after), before, after)
		}
		return
	}
	judge := judge
	if before.why != profile.Whole {
		if r.whole == nil {
			return
		}
		before, judge = r.whole, judgeAcross
	}
	c.judged++
	c.noteSlots(after)
	by, err := judge(before, after)
	if err == nil {
		c.by[by]++
	}
	r.violated(err, before, after)
}

// surroundings are what a walk that was cut short may have failed on: the registers, and the code around.
func (r *stepping) surroundings(m *moment) string {
	code := make([]byte, 512)
	from := m.pc - 256
	if r.s.Process.Read(from, code) != nil {
		from, code = m.pc, m.code[:]
	}
	return fmt.Sprintf("registers %x\ncode from %#x: % x", m.regs, from, code)
}

// violated tells of a step that has no explanation.
func (r *stepping) violated(why error, before, after *moment) {
	if why == nil {
		return
	}
	r.t.Fail()
	if r.count.violations++; r.count.violations <= maxShown {
		r.t.Logf("VIOLATION: %v\nbefore: %vafter: %v", why, before, after)
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
	names := []string{byNothing, byCall, byReturn, byRebuilding}
	for _, r := range regions {
		names = append(names, r.name)
	}
	return names
}
