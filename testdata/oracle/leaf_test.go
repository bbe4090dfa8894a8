//go:build linux

package oracle

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/session"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

// leafPrograms are the programs at whose pcs the rules for inlined methods are held against the truth. The rules
// were made with the figures of the first ones before their author's eyes; the others are held back, and must
// stay so: whoever changes a rule looks at them afterwards only.
var leafPrograms = append([]leafProgram{
	{"javac", []string{"truth.JavacLoop", "--", "0", javacClasses}, false},
	{"xml", []string{"truth.Programs", "--", "xml"}, false},
	{"streams", []string{"truth.Programs", "--", "streams"}, false},
	{"maps", []string{"truth.Programs", "--", "maps"}, false},
	{"compute", []string{"truth.Everyday", "--", "compute"}, false},
	{"text", []string{"truth.Everyday", "--", "text"}, false},
	{"json", []string{"truth.Services", "--", "json"}, false},
	{"sorting", []string{"truth.Services", "--", "sorting"}, false},
	{"trees", []string{"truth.Services", "--", "trees"}, false},
	{"codecs", []string{"truth.Services", "--", "codecs"}, false},
	{"words", []string{"truth.Services", "--", "words"}, false},
	{"objects", []string{"truth.Programs", "--", "objects"}, false},
	{"intrinsic-strings", []string{"truth.Intrinsics", "--", "strings"}, false},
	{"intrinsic-text", []string{"truth.Intrinsics", "--", "text"}, false},
	{"intrinsic-arrays", []string{"truth.Intrinsics", "--", "arrays"}, false},
	{"intrinsic-numbers", []string{"truth.Intrinsics", "--", "numbers"}, false},
	{"intrinsic-crypto", []string{"truth.Intrinsics", "--", "crypto"}, false},
	{"regex", []string{"truth.Programs", "--", "regex"}, true},
	{"numbers", []string{"truth.Programs", "--", "numbers"}, true},
	{"format", []string{"truth.Programs", "--", "format"}, true},
	{"graphs", []string{"truth.Services", "--", "graphs"}, true},
	{"market", []string{"truth.Services", "--", "market"}, true},
	{"layout", []string{"truth.Services", "--", "layout"}, true},
}, database()...)

type leafProgram struct {
	name string
	line []string
	held bool
}

// database is H2, if GOPROF_H2 names its jar: mvn dependency:copy -Dartifact=com.h2database:h2:2.5.252
// -DoutputDirectory=DIR fetches it.
func database() []leafProgram {
	if jar := os.Getenv("GOPROF_H2"); jar != "" {
		return []leafProgram{{"h2", []string{"truth.Database", "--", jar}, false}}
	}
	return nil
}

// leafModes are the compilers, by the level whose code counts.
var leafModes = []struct {
	name  string
	level uint8
	flags []string
}{
	{"c2", 4, nil},
	{"c1", 1, []string{"-XX:TieredStopAtLevel=1"}},
	{"c1-profiled", 3, []string{"-XX:TieredStopAtLevel=3"}},
}

// fullRecords makes the JVM record where each instruction comes from, and keeps C2 from two things that spoil these
// records. Once it has inlined a method late, it takes all instructions that it makes from then on for that
// call's (callGenerator.cpp, do_late_inline: the default node notes are never put back). JDK 8 mixes them up where it
// numbers its nodes anew (JDK-8201516).
func fullRecords(jdk jvmtest.JDK) []string {
	flags := []string{"-XX:+UnlockDiagnosticVMOptions", "-XX:+IgnoreUnrecognizedVMOptions", "-XX:+DebugNonSafepoints",
		"-XX:-IncrementalInline", "-XX:-IncrementalInlineMH", "-XX:-IncrementalInlineVirtual",
		"-XX:-OptimizeStringConcat", "-XX:-EliminateAutoBox"}
	if jdk.Version == 8 {
		flags = append(flags, "-XX:-RenumberLiveNodes")
	}
	return flags
}

// leafScore is how often a rule was right.
type leafScore struct{ n, leaf, chain int }

func (s *leafScore) add(truth, told []vmstructs.Scope) {
	s.n++
	if told[0].Method != truth[0].Method {
		return
	}
	s.leaf++
	if slices.EqualFunc(truth, told, func(a, b vmstructs.Scope) bool { return a.Method == b.Method }) {
		s.chain++
	}
}

func (s leafScore) String() string {
	n := float64(max(s.n, 1)) / 100
	return fmt.Sprintf("%.1f %% (whole chain %.1f)", float64(s.leaf)/n, float64(s.chain)/n)
}

// leafScores are those of a program, or of several.
type leafScores struct {
	ours, byAddress leafScore
	calls           leafScore // of those, the samples in code that was called without a record
	pieces          leafScore // and those in code that C2 makes in one piece, if certain for what
	unjudged        leafScore // samples in such pieces whose records are of something else
	unjudgedSure    int       // those of them that are certain
	stray           leafScore // samples whose record proves nothing: see leafJudge
	straySure       int       // those of them that are certain
	asRecord        leafScore // all samples, by the record alone, whatever the judge says
	counted         int       // samples in counters of C1's of which the judge knows more than the record says
	sure            [profile.NumCertainty]leafScore
	byRule          map[string]*leafScore
	inlined         int             // samples in methods that are inlined
	first           []time.Duration // what the first sight of each pc took of CPU time
	firstReads      []int           // and how many reads of the target's memory, if target counts them
	target          *countedReads
	seen            map[uint64]bool
}

func (s *leafScores) String() string {
	text := fmt.Sprintf("%d pcs, %d in inlined methods: leaf right %v, by address %v", s.ours.n, s.inlined, s.ours,
		s.byAddress)
	for c, score := range s.sure {
		text += fmt.Sprintf("; %v %d: %v", profile.Certainty(c), score.n, score)
	}
	if s.calls.n > 0 {
		text += fmt.Sprintf("; %d in a call without a record: %v", s.calls.n, s.calls)
	}
	if s.pieces.n+s.unjudged.n > 0 {
		text += fmt.Sprintf("; %d in pieces: %v, and %d whose records are of something else: %v", s.pieces.n, s.pieces,
			s.unjudged.n, s.unjudged)
	}
	if c := s.stray; c.n > 0 {
		text += fmt.Sprintf("; %d by records that prove nothing: %v", c.n, c)
	}
	if n := s.ours.n + s.unjudged.n + s.stray.n; n > 0 {
		text += fmt.Sprintf("; of all %d: certain %.1f %%, leaf as the record %.1f %%", n,
			float64(s.sure[profile.Certain].n+s.unjudgedSure+s.straySure)*100/float64(n),
			float64(s.asRecord.leaf)*100/float64(max(s.asRecord.n, 1)))
	}
	if s.counted > 0 {
		text += fmt.Sprintf("; %d in counters are judged by the method whose counter it is", s.counted)
	}
	if n := len(s.first); n > 0 {
		slices.Sort(s.first)
		var sum time.Duration
		for _, d := range s.first {
			sum += d
		}
		text += fmt.Sprintf("; first sight of %d pcs: %v, median %v, nine of ten within %v, 99 of 100 %v, all %v", n,
			sum/time.Duration(n), s.first[n/2], s.first[n*9/10], s.first[n*99/100], s.first[n-1])
	}
	if n := len(s.firstReads); n > 0 {
		slices.Sort(s.firstReads)
		sum := 0
		for _, k := range s.firstReads {
			sum += k
		}
		text += fmt.Sprintf("; reads of a first sight: %.1f, 99 of 100 within %d, all %d", float64(sum)/float64(n),
			s.firstReads[n*99/100], s.firstReads[n-1])
	}
	return text
}

// ofRule is the score of the rules of that name. What has no name needs no rule: a frame that is being built.
func (s *leafScores) ofRule(name string) *leafScore {
	if s.byRule == nil {
		s.byRule = map[string]*leafScore{}
	}
	if s.byRule[name] == nil {
		s.byRule[name] = &leafScore{}
	}
	return s.byRule[name]
}

// rules says how often each rule has decided and was right.
func (s *leafScores) rules() (text string) {
	for _, name := range slices.Sorted(maps.Keys(s.byRule)) {
		if r := s.byRule[name]; r.n > 0 {
			text += fmt.Sprintf("\n  %-16q %6d, %4.1f %%: %v", name, r.n, float64(r.n)*100/float64(s.ours.n), r)
		}
	}
	return text
}

func (s *leafScores) sum(o *leafScores) {
	add := func(a *leafScore, b leafScore) { a.n, a.leaf, a.chain = a.n+b.n, a.leaf+b.leaf, a.chain+b.chain }
	add(&s.ours, o.ours)
	add(&s.byAddress, o.byAddress)
	add(&s.calls, o.calls)
	add(&s.pieces, o.pieces)
	add(&s.unjudged, o.unjudged)
	add(&s.stray, o.stray)
	add(&s.asRecord, o.asRecord)
	s.unjudgedSure += o.unjudgedSure
	s.straySure += o.straySure
	s.counted += o.counted
	for i := range s.sure {
		add(&s.sure[i], o.sure[i])
	}
	for name, score := range o.byRule {
		add(s.ofRule(name), *score)
	}
	s.inlined += o.inlined
	s.first = append(s.first, o.first...)
	s.firstReads = append(s.firstReads, o.firstReads...)
}

// TestLeaf runs real programs with -XX:+DebugNonSafepoints: at each pc where a thread was sampled the full records are
// the truth, and those of safepoints alone what a JVM without the flag would have. The code is the same.
//
//	GOPROF_LEAF_SAMPLES=5000 go test ./testdata/oracle -run TestLeaf -v
func TestLeaf(t *testing.T) {
	t.Parallel()
	samples, programs := 300, []string{"c2 javac", "regex", "c2 streams"}
	modes := jvmtest.Drawn(t, 1, []string{"c2", "c1-profiled"})
	long, _ := strconv.Atoi(os.Getenv("GOPROF_LEAF_SAMPLES"))
	if long > 0 {
		samples = long
	}
	if long > 0 && len(database()) == 0 {
		t.Run("h2", func(t *testing.T) { t.Skip("GOPROF_H2 names no jar of H2: CONTRIBUTING.md has the command") })
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, mode := range leafModes {
			if long == 0 && !slices.Contains(modes, mode.name) {
				continue
			}
			t.Run(mode.name, func(t *testing.T) {
				var tuned, held leafScores
				for _, p := range leafPrograms {
					short := slices.Contains(programs, p.name) || slices.Contains(programs, mode.name+" "+p.name)
					if long == 0 && !short {
						continue
					}
					t.Run(p.name, func(t *testing.T) {
						flags := append(slices.Concat(fullRecords(jdk), mode.flags), p.line[1:]...)
						jvm := jvmtest.Start(t, jdk, p.line[0], flags...)
						defer jvm.Kill() // javac would end after two rounds only
						scores := scoreLeaves(t, attach(t, jvm.PID), mode.level, samples)
						t.Log(scores)
						if p.held {
							held.sum(scores)
						} else {
							tuned.sum(scores)
						}
					})
				}
				t.Logf("programs that rules were made with: %v", &tuned)
				t.Logf("programs held back: %v", &held)
				tuned.sum(&held)
				t.Logf("rules that have decided: %s", tuned.rules())
				tuned.judge(t, mode.level, jdk)
			})
		}
	})
}

// scoreLeaves takes so many samples in code of that level. The JVM compiles meanwhile: at first there is little.
func scoreLeaves(t *testing.T, s *session.Session, level uint8, samples int) *leafScores {
	t.Helper()
	judge := newLeafJudge(s.Process, s.VM)
	scores := &leafScores{seen: map[uint64]bool{}}
	time.Sleep(2 * time.Second)
	for tries := 0; scores.ours.n < samples && tries < 30; tries++ {
		var told []leafTold
		sample(t, s, time.Millisecond, samples, func(_ *look.Look, st *profile.Stack) {
			if p, ok := compiledPlace(s, st); ok && p.b.Level == level && scores.ours.n+len(told) < samples {
				if inEmulator() && p.called == "" {
					p.pc = somewhereInBlock(s, p)
				}
				told = append(told, scores.ask(judge, p))
			}
		})
		for i := range told { // the judge reads much of what a first sight reads
			scores.score(judge, &told[i])
		}
	}
	return scores
}

// leafPlace is where in compiled code a thread was stopped, or was in a call without a record.
type leafPlace struct {
	b      *vmstructs.Blob
	pc     uint64
	called string // what, "" if it was stopped there
}

// compiledPlace finds it, on top of a stack or below code that is not Java's.
func compiledPlace(s *session.Session, st *profile.Stack) (p leafPlace, ok bool) {
	for i := range st.Frames {
		f := &st.Frames[i]
		if !f.Kind.Java() {
			p.called = f.Func.Name
			continue
		}
		b, err := s.VM.Blob(f.PC)
		p.b, p.pc = b, f.PC
		// Code without full records was made a moment ago, and its OopMaps are not there yet; or all are safepoints.
		return p, err == nil && b.Kind == vmstructs.Nmethod && s.VM.FullRecords(b) &&
			(p.called == "" || !s.VM.IsSafepoint(b, f.PC))
	}
	return p, false
}

// ownTime is the CPU time of this OS thread: on a busy machine the clock on the wall tells of others.
func ownTime() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}

// judge fails the test if the rules are worse than they were, with room for the luck of a short run. C2's records of 8
// and 11 are further from the truth: most of what disagrees there is in loops, and has the record of code that runs
// once before (docs/evidence/leaf.md).
func (s *leafScores) judge(t *testing.T, level uint8, jdk jvmtest.JDK) {
	t.Helper()
	least, certain := 55, 95
	if jdk.Version < 17 && level == 4 {
		certain = 75
	}
	if level < 4 {
		least = 75
	}
	if s.ours.n < 200 || s.inlined < 30 {
		t.Errorf("only %d samples, %d in inlined methods", s.ours.n, s.inlined)
	}
	if s.ours.leaf*100 < s.ours.n*least || s.ours.leaf < s.byAddress.leaf {
		t.Errorf("the leaf is right in %d of %d, by address in %d", s.ours.leaf, s.ours.n, s.byAddress.leaf)
	}
	if n := s.unjudged.n + s.stray.n; n*3 > s.ours.n { // streams: up to a fifth
		t.Errorf("%d samples are not judged, beside %d that are", n, s.ours.n)
	}
	few := 1 - float64(certain)/100
	if p := s.pieces; p.n-p.leaf > atMost(few, p.n) {
		t.Errorf("the leaf is right in %d of %d samples in code that C2 makes in one piece", p.leaf, p.n)
	}
	if c := s.sure[profile.Certain]; c.n-c.leaf > atMost(few, c.n) {
		t.Errorf("the certain ones are right in %d of %d", c.leaf, c.n)
	} else if c.n*100 < s.ours.n*30 { // 56 and more are; TestCertainOfAll has them without any flag
		t.Errorf("only %d of %d are certain", c.n, s.ours.n)
	}
}
