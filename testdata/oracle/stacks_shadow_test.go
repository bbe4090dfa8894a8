//go:build linux

package oracle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

// shadowModes are the ways to run Java that each make other frames.
var shadowModes = []struct {
	name  string
	flags []string
	args  []string
	each  bool // on each JDK in the short form, too
}{
	{name: "mixed", each: true},
	{name: "interpreted", flags: []string{"-Xint"}, each: true},
	{name: "c1", flags: []string{"-XX:TieredStopAtLevel=1"}},
	{name: "c1-profiled", flags: []string{"-XX:TieredStopAtLevel=3"}},
	{name: "c2-only", flags: []string{"-XX:-TieredCompilation"}},
	{name: "inlining", flags: []string{"-XX:MaxInlineLevel=30", "-XX:MaxInlineSize=300", "-XX:FreqInlineSize=600"},
		each: true},
	{name: "excluded", flags: []string{"-XX:CompileCommand=quiet", "-XX:CompileCommand=exclude,truth/*.interpreted*"}},
	{name: "small-cache", flags: []string{"-XX:ReservedCodeCacheSize=4m", "-XX:+UseCodeCacheFlushing"}},
	{name: "exact-inlining", flags: []string{"-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"}},
	{name: "deopt-storm", flags: []string{"-XX:PerMethodRecompilationCutoff=100000000"},
		args: []string{"1", "1", "storm"}, each: true},
}

// Most stops that may differ in what is inlined on top, in percent. Where the JVM records of each
// instruction where it comes from, hardly any does, unless a loop has records that are wrong in themselves: then
// HotSpot's own rule is as often wrong. Otherwise it depends on how the compiler laid out
// the loop in which a run spends its time, so only all modes together are held to it.
const (
	mayDiffer      = 20
	mayDifferExact = 6
)

// shadowCount is what became of the stops of one mode.
type shadowCount struct {
	stops, truncated int
	c2               int    // stacks with code of the JVM's best compiler
	pacMask          uint64 // the bits of an address that a signature takes, 0 where the CPU signs none
	signed           int    // stops with a signed address of generated code on the stack
	verdicts         [jvmtest.NumVerdicts]int
	byAddress        [jvmtest.NumVerdicts]int // what they would be by HotSpot's own rule
	reasons          map[profile.Reason]int
	continuations    *vmstructs.Continuations      // not nil: the thread is a virtual one
	fromHeap         int                           // stacks with frames from the heap
	together         int                           // stops in which these were copied with the stack
	code             map[[2]uint64]map[string]bool // see codeAt, by nmethod
}

func (c *shadowCount) String() string {
	s := fmt.Sprintf("%d stops", c.stops)
	for v, n := range c.verdicts {
		s += fmt.Sprintf(", %d %v", n, jvmtest.Verdict(v))
	}
	return s + fmt.Sprintf(", %d with C2's code, %d truncated %v; by address %d would be exact, %d inlined differ", c.c2,
		c.truncated, c.reasons,
		c.byAddress[jvmtest.Exact], c.byAddress[jvmtest.InlinedDiffer])
}

// shortShadow is how many stops there are of each mode in the short form.
const shortShadow = 400

// TestShadow stops a thread that keeps its own stack and compares frame by frame.
func TestShadow(t *testing.T) {
	t.Parallel()
	stops := shortShadow
	if s := os.Getenv("GOPROF_SHADOW_STOPS"); s != "" {
		stops, _ = strconv.Atoi(s)
	}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		var all shadowCount
		ran := 0
		for _, mode := range shadowModes {
			if !mode.each && stops == shortShadow && jdk != newestJDK(t) {
				continue
			}
			t.Run(mode.name, func(t *testing.T) {
				count := countShadow(t, jdk, mode.flags, mode.args, stops)
				count.judge(t, mode.flags, stops)
				all.add(count)
				ran++
			})
		}
		if ran == len(shadowModes) {
			all.judgeTop(t)
		}
	})
}

// countShadow runs the program and compares at so many stops.
func countShadow(t *testing.T, jdk jvmtest.JDK, flags, args []string, stops int) *shadowCount {
	t.Helper()
	jvm, path := startShadow(t, jdk, flags, args)
	return watchShadow(t, jvm, path, slices.Contains(args, "virtual"), stops)
}

// startShadow starts the program; the path is its file's.
func startShadow(t *testing.T, jdk jvmtest.JDK, flags, args []string) (jvm *jvmtest.JVM, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "shadow")
	options := append(append(append([]string{}, flags...), "--", path), args...)
	return jvmtest.Start(t, jdk, "truth.Shadow", options...), path
}

// watchShadow compares at so many stops. virtual: the program runs on a virtual thread.
func watchShadow(t *testing.T, jvm *jvmtest.JVM, path string, virtual bool, stops int) *shadowCount {
	t.Helper()
	shadow, err := jvmtest.OpenShadow(path)
	if err != nil {
		t.Fatal(err)
	}
	defer shadow.Close()
	threads, err := shadow.Threads()
	if err != nil || len(threads) == 0 {
		t.Fatal("no shadow threads", err)
	}
	s := attach(t, jvm.PID)
	tid := threads[0].TID
	th, _ := s.Thread(tid)
	if th.Java.Addr == 0 {
		t.Fatalf("thread %d is not a Java thread", tid)
	}
	count := &shadowCount{reasons: map[profile.Reason]int{}, code: map[[2]uint64]map[string]bool{}}
	if virtual {
		count.continuations = s.VM.NewContinuations()
		defer func() { trailOfTest = process.Trail{} }()
	}
	for i := 0; i < stops || count.continuations != nil && count.stops < stops && i < 4*stops; i++ {
		shadowStop(t, s, shadow, tid, th, count)
		pause(i)
	}
	t.Log(count)
	return count
}

// judge fails the test if more stops disagree than may.
func (c *shadowCount) judge(t *testing.T, flags []string, stops int) {
	t.Helper()
	if n := c.verdicts[jvmtest.Mismatch]; n > 0 {
		t.Errorf("%d mismatches", n)
	}
	ours, theirs := c.verdicts[jvmtest.InlinedDiffer], c.byAddress[jvmtest.InlinedDiffer]
	if slices.Contains(flags, "-XX:+DebugNonSafepoints") && (ours-theirs)*50 > c.stops {
		c.atMostDiffer(t, mayDifferExact)
	}
	if c.stops < stops*9/10 {
		t.Errorf("only %d of %d stops could be compared", c.stops, stops)
	}
	if c.truncated > atMost(1.0/200, c.stops) {
		t.Errorf("%d of %d stacks are truncated, more than 0.5 %%", c.truncated, c.stops)
	}
}

// judgeTop fails the test if the methods inlined on top are wrong too often, or more often than by
// HotSpot's own rule.
func (c *shadowCount) judgeTop(t *testing.T) {
	t.Helper()
	c.atMostDiffer(t, mayDiffer)
	if ours, theirs := c.verdicts[jvmtest.InlinedDiffer], c.byAddress[jvmtest.InlinedDiffer]; ours > theirs {
		t.Errorf("%d of %d stops differ in what is inlined on top, by address %d would", ours, c.stops, theirs)
	}
}

func (c *shadowCount) atMostDiffer(t *testing.T, percent int) {
	t.Helper()
	if n := c.verdicts[jvmtest.InlinedDiffer] + c.verdicts[jvmtest.OneMore]; n*100 > c.stops*percent {
		t.Errorf("%d of %d stops differ on top, more than %d %%", n, c.stops, percent)
	}
}

func (c *shadowCount) add(more *shadowCount) {
	c.stops += more.stops
	for v := range c.verdicts {
		c.verdicts[v] += more.verdicts[v]
		c.byAddress[v] += more.byAddress[v]
	}
}

// stopShadow stops the thread once, and takes what it says of itself while it stands. during is called then, too.
func stopShadow(t *testing.T, s *session.Session, shadow *jvmtest.Shadow, tid int, th session.Thread,
	during func()) (own jvmtest.ShadowThread, snap *process.Snapshot) {
	t.Helper()
	var unread error
	err := stopped(s.Process, tid, th.Hint, func(sn *process.Snapshot) {
		snap = sn
		own, unread = shadow.Thread(tid)
		during()
	})
	if err := errors.Join(err, unread); err != nil {
		t.Fatal(err)
	}
	return own, snap
}

// oneShadowThread opens what a program says of itself that has one thread which does.
func oneShadowThread(t *testing.T, path string) (shadow *jvmtest.Shadow, tid int) {
	t.Helper()
	shadow, err := jvmtest.OpenShadow(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shadow.Close() })
	threads, err := shadow.Threads()
	if err != nil || len(threads) != 1 {
		t.Fatalf("%d shadow threads, %v", len(threads), err)
	}
	return shadow, threads[0].TID
}

func shadowStop(t *testing.T, s *session.Session, shadow *jvmtest.Shadow, tid int, th session.Thread,
	count *shadowCount) {
	var when int64 // when the thread stood
	own, snap := stopShadow(t, s, shadow, tid, th, func() { when = monotonic() })
	if !own.Running {
		return
	}
	if count.continuations != nil {
		count.continuations.Read(snap, when)
		k := &snap.Continuation
		k.Settled = k.Settled && (k.Together || monotonic()-when < int64(s.Soon))
		count.together += b2i(k.Together)
		if trailOfTest.Known = false; count.stops%2 == 0 { // in turns with it and without
			count.continuations.Trail(&trailOfTest)
		}
	}
	var st profile.Stack
	s.Walker.Walk(snap, &st)
	if count.continuations != nil {
		virtual, _, mounted := st.Split()
		if !mounted {
			return // the carrier runs nothing just now
		}
		st = virtual
		inHeap := func(f profile.Frame) bool { return f.SP-snap.SP > uint64(len(snap.Stack)) }
		if slices.ContainsFunc(st.Frames, inHeap) {
			count.fromHeap++
		}
	}
	count.stops++
	count.noteSigned(s, snap)
	if slices.ContainsFunc(st.Frames, func(f profile.Frame) bool { return f.Kind == profile.C2 }) {
		count.c2++
	}
	if st.Truncated != profile.Whole {
		count.truncated++
		count.reasons[st.Truncated]++
		if os.Getenv("GOPROF_SHOW") != "" && count.truncated <= maxShown {
			t.Log(describe(s, snap, &st))
		}
		return
	}
	verdict, why := shadow.Judge(own.Frames, count.walkOf(s, shadow, &st))
	count.verdicts[verdict]++
	if other := count.nextByAddress(s, &st); other != nil {
		verdict, _ := shadow.Judge(own.Frames, count.walkOf(s, shadow, other))
		count.byAddress[verdict]++
	} else {
		count.byAddress[verdict]++
	}
	if verdict == jvmtest.Mismatch && count.verdicts[verdict] < 4 {
		t.Errorf("seed %d: %v\n%s\nshadow:\n%s", own.Seed, why, describe(s, snap, &st), shadowText(own))
	}
}

func (c *shadowCount) noteSigned(s *session.Session, snap *process.Snapshot) {
	if c.pacMask = snap.PACMask; c.pacMask == 0 {
		return
	}
	for at := 0; at+8 <= len(snap.Stack); at += 8 {
		if w := binary.LittleEndian.Uint64(snap.Stack[at:]); w&c.pacMask != 0 && s.VM.InCode(w&^c.pacMask) {
			c.signed++
			return
		}
	}
}

// nextByAddress is the stack as it would be if the methods on top were those of the next record by
// address (see unwind/leaf/finder.go); nil if the thread is not in compiled Java.
func (c *shadowCount) nextByAddress(s *session.Session, st *profile.Stack) *profile.Stack {
	top := st.Frames[0]
	blob, err := s.VM.Blob(top.PC)
	if err != nil || blob.Kind != vmstructs.Nmethod {
		return nil
	}
	scopes, err := s.VM.Scopes(blob, top.PC, false)
	if err != nil {
		return nil
	}
	other := new(profile.Stack)
	for i, scope := range scopes {
		f := profile.Frame{Func: &profile.Func{Name: scope.Method.Full()}, Kind: profile.Inlined, Line: scope.Line,
			PC: top.PC, SP: top.SP}
		if i == len(scopes)-1 {
			f.Kind = profile.C2
		}
		other.Frames = append(other.Frames, f)
	}
	below := slices.IndexFunc(st.Frames, func(f profile.Frame) bool { return f.SP != top.SP })
	other.Frames = append(other.Frames, st.Frames[max(below, 0):]...)
	return other
}

// walkOf takes the Java frames of a stack for the judge, and marks those of the topmost physical
// frame of compiled Java: they have one sp.
func (c *shadowCount) walkOf(s *session.Session, shadow *jvmtest.Shadow, st *profile.Stack) (walk jvmtest.Walk) {
	var top uint64
	for _, f := range st.Frames {
		if !f.Kind.Java() {
			continue
		}
		if walk.Frames == nil {
			top = f.SP
			walk.Code = c.codeAt(s, shadow, f.PC)
		}
		walk.Frames = append(walk.Frames, jvmtest.WalkedFrame{Method: f.Func.Name, Line: int(f.Line),
			Top: walk.Code != nil && f.SP == top, Inlined: f.Kind == profile.Inlined})
	}
	return walk
}

// codeAt lists the methods of which the compiled code at pc is made: all that the JVM's records
// of any place in it name. nil where there is no compiled code.
func (c *shadowCount) codeAt(s *session.Session, shadow *jvmtest.Shadow, pc uint64) map[string]bool {
	blob, err := s.VM.Blob(pc)
	if err != nil || blob.Kind != vmstructs.Nmethod {
		return nil
	}
	key := [2]uint64{blob.Begin, uint64(blob.CompileID)}
	if code := c.code[key]; code != nil {
		return code
	}
	code := map[string]bool{}
	for at := blob.Begin; at <= blob.End; at++ {
		if !blob.HasPcDesc(at) {
			continue
		}
		scopes, err := s.VM.Scopes(blob, at, true)
		if err != nil {
			return nil
		}
		for _, scope := range scopes {
			name, _ := shadow.Name(scope.Method.Full())
			code[name] = true
		}
	}
	c.code[key] = code
	return code
}

func shadowText(own jvmtest.ShadowThread) string {
	var b strings.Builder
	for _, f := range own.Frames {
		fmt.Fprintf(&b, "  %s:%d\n", f.Method, f.Line)
	}
	return b.String()
}
