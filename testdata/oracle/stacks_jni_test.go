//go:build linux

package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
)

// TestJNI stops a thread whose stack is Java and C in turns, many times over, at arbitrary
// instructions, and compares with what both say of themselves. C is compiled with unwind
// information, and without it and symbols. GOPROF_JNI_STOPS is the number of stops.
func TestJNI(t *testing.T) {
	t.Parallel()
	stops := envNumber("GOPROF_JNI_STOPS", ctest.Rounds(600))
	judge := chainJudge{
		cfi:  buildNative(t, "jnichain.c", "libjnicfi.so", append(withCFI, "-DLIB=Cfi", "-DFIRST=101")...),
		bare: buildNative(t, "jnichain.c", "libjnibare.so", append(bare, "-DLIB=Bare", "-DFIRST=201")...).strip(t),
	}
	jvmtest.ForDrawnJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, mode := range jniModes {
			t.Run(mode.name, func(t *testing.T) { jniRun(t, jdk, mode, judge, stops/mode.share) })
		}
	})
}

// jniMode is a way to run truth.JniChain.
type jniMode struct {
	name, flag, maker string
	// whole is how a stack ends that is as whole as it can be: the root of a thread that C
	// without unwind information has made is not to be told.
	whole profile.Reason
	share int // of the stops
}

var jniModes = []jniMode{
	{"mixed", "-Xmixed", "java", profile.Whole, 1},
	{"interpreted", "-Xint", "java", profile.Whole, 1},
	{"attached", "-Xmixed", "Cfi", profile.Whole, 3},
	{"attached-no-unwind-info", "-Xmixed", "Bare", profile.NoUnwindInfo, 3},
}

// isWhole: the stack ends as it should.
func (m *jniMode) isWhole(st *profile.Stack, chain []link) bool {
	ends := m.whole == profile.Whole || len(chain) > 0 && chain[len(chain)-1].kind == gapLink &&
		len(chain) > 1 && chain[len(chain)-2].name == "attachedBare_root"
	return st.Truncated == m.whole && ends
}

// jniCount is what became of the stops.
type jniCount struct {
	stops, whole, deepest int
	verdicts, parts       [jvmtest.NumVerdicts]int // of whole stacks, and of others
	reasons               map[profile.Reason]int
	shapes                map[string]int // C functions that were walked through, by name
	kinds                 map[profile.Kind]int
	gapOnTop, gapBetween  int
	generated             int // stops in what HotSpot has generated for C to call
	code                  shadowCount
}

func (c *jniCount) String() string {
	s := fmt.Sprintf("%d stops, %d whole:", c.stops, c.whole)
	for v, n := range c.verdicts {
		s += fmt.Sprintf(" %d %v,", n, jvmtest.Verdict(v))
	}
	return s + fmt.Sprintf(" cut %v; up to %d frames of Java and C, gaps: %d on top, %d between; %d in generated code "+
		"below C; Java frames: %v; functions: %v",
		c.reasons, c.deepest, c.gapOnTop, c.gapBetween, c.generated, c.kinds, c.shapes)
}

func jniRun(t *testing.T, jdk jvmtest.JDK, mode jniMode, judge chainJudge, stops int) {
	path := filepath.Join(t.TempDir(), "shadow")
	jvm := jvmtest.Start(t, jdk, "truth.JniChain",
		append(jniFlags(jdk), mode.flag, "--", path, judge.cfi.path, judge.bare.path, mode.maker)...)
	shadow, tid := oneShadowThread(t, path)
	judge.names = shadowNames(t, path)
	s := attach(t, jvm.PID)
	th, _ := s.Thread(tid)
	if th.Java.Addr == 0 {
		t.Fatalf("thread %d is not a Java thread", tid)
	}
	count := &jniCount{reasons: map[profile.Reason]int{}, shapes: map[string]int{}, kinds: map[profile.Kind]int{},
		code: shadowCount{code: map[[2]uint64]map[string]bool{}}}
	for i := 0; i < stops || !(count.sawAll(&mode) && count.notSeen(&mode, &judge) == "") && i < 50*stops; i++ {
		jniStop(t, s, shadow, tid, th, &mode, &judge, count)
		pause(i)
	}
	t.Log(count)
	checkJNI(t, &mode, &judge, count, count.stops)
}

// sawAll reports whether there was each kind of Java frame and gap. Where CPUs are short the compilers take their time.
func (c *jniCount) sawAll(mode *jniMode) bool {
	return (mode.flag == "-Xint" || c.kinds[profile.C2] > 0) && c.gapOnTop > 0 && c.gapBetween > 0
}

// notSeen is a function of C that no stack went through, "" if there is none.
func (c *jniCount) notSeen(mode *jniMode, judge *chainJudge) string {
	for _, name := range judge.names {
		// Of the functions without unwind information the outer ones are seen only on top, and
		// a thread has one maker.
		seen := c.shapes[name] > 0 || isBare(name) && strings.HasSuffix(name, "_outer") ||
			strings.HasPrefix(name, "attached") && name != "attached"+mode.maker+"_root"
		if isC(name) && !seen {
			return name
		}
	}
	return ""
}

// jniFlags: since JDK 24 a JVM warns of native code that nobody has allowed.
func jniFlags(jdk jvmtest.JDK) []string {
	if jdk.Version < 17 {
		return nil
	}
	return []string{"--enable-native-access=ALL-UNNAMED"}
}

// shadowNames are all names that the program's shadow may hold.
func shadowNames(t *testing.T, path string) (names []string) {
	t.Helper()
	ids, err := os.ReadFile(path + ".ids")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(ids)) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			names = append(names, name)
		}
	}
	return names
}

func jniStop(t *testing.T, s *session.Session, shadow *jvmtest.Shadow, tid int, th session.Thread, mode *jniMode,
	judge *chainJudge, count *jniCount) {
	t.Helper()
	own, snap := stopShadow(t, s, shadow, tid, th, func() {})
	if !own.Running {
		t.Fatal("the program's thread has ended")
	}
	var st profile.Stack
	s.Walker.Walk(snap, &st)
	chain := judge.chain(&st)
	whole := mode.isWhole(&st, chain)
	count.add(&st, chain, whole)
	verdicts, how := &count.verdicts, judge.judge
	if !whole {
		verdicts, how = &count.parts, judge.judgePart
	}
	verdict, why := how(own.Frames, chain, count.code.walkOf(s, shadow, &st).Code)
	if verdicts[verdict]++; verdict == jvmtest.Mismatch && verdicts[verdict] < 4 {
		t.Errorf("seed %d: %v\n%s\nshadow:\n%s", own.Seed, why, describe(s, snap, &st), shadowText(own))
	}
	if !whole && (st.Truncated != profile.NoUnwindInfo || os.Getenv("GOPROF_SHOW") != "") {
		t.Log(describe(s, snap, &st))
	}
}

func (c *jniCount) add(st *profile.Stack, chain []link, whole bool) {
	c.stops++
	if whole {
		c.whole++
	} else {
		c.reasons[st.Truncated]++
	}
	c.deepest = max(c.deepest, len(chain))
	for i, l := range chain {
		if l.kind == cLink {
			c.shapes[l.name]++
		}
		if l.kind == gapLink && i < 2 {
			c.gapOnTop++
		} else if l.kind == gapLink {
			c.gapBetween++
		}
	}
	for i := range st.Frames {
		if k := st.Frames[i].Kind; k.Java() {
			c.kinds[k]++
		}
	}
	if len(st.Frames) > 1 && st.Frames[0].Kind == profile.Stub && st.Frames[1].Kind == profile.Native && len(chain) > 0 &&
		chain[0].kind == cLink {
		c.generated++
	}
}

// checkJNI: no stack is wrong, hardly any cut, and all shapes of C have been walked through.
func checkJNI(t *testing.T, mode *jniMode, judge *chainJudge, count *jniCount, stops int) {
	t.Helper()
	if n := count.verdicts[jvmtest.Mismatch] + count.parts[jvmtest.Mismatch]; n > 0 {
		t.Errorf("%d mismatches", n)
	}
	if stops-count.whole > atMost(0.02, stops) {
		t.Errorf("only %d of %d stacks are whole", count.whole, stops)
	}
	for reason, n := range count.reasons {
		if reason != profile.NoUnwindInfo && n > atMost(1.0/200, stops) { // the share that TestShadow permits
			t.Errorf("%d stacks are cut: %v", n, reason)
		}
	}
	if name := count.notSeen(mode, judge); name != "" {
		t.Errorf("no stack went through %s", name)
	}
	if count.gapOnTop == 0 || count.gapBetween == 0 {
		t.Errorf("%d gaps on top, %d between", count.gapOnTop, count.gapBetween)
	}
	compiled := []profile.Kind{profile.C1, profile.C2, profile.Inlined}
	seen := slices.ContainsFunc(compiled, func(k profile.Kind) bool { return count.kinds[k] > 0 })
	if interpreted := mode.flag == "-Xint"; seen == interpreted || !count.sawAll(mode) {
		t.Errorf("Java frames are of the wrong kinds: %v", count.kinds)
	}
}
