package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/output"
	"goprof/output/flame"
	"goprof/output/recording"
	"goprof/profile"
)

func parse(t *testing.T, text string) *output.Tree {
	t.Helper()
	tree, err := output.ParseCollapsed(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func compareTrees(t *testing.T, before, after *output.Tree, o Options) *Result {
	t.Helper()
	c := New()
	for side, tree := range []*output.Tree{before, after} {
		if err := c.AddTree(Side(side), tree, 0); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.Compare(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The wanted numbers come from numerical integration (midpoints of 400,000 parts), erfc, and sums of binomial
// coefficients.
func TestDistributions(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"2*pt(-2, 15)", student(2, 15), 0.06394501},
		{"2*pt(-5, 30)", student(5, 30), 2.329669e-05},
		{"2*pnorm(-1.96)", student(1.96, math.Inf(1)), 0.04999579},
		{"2*pbinom(2, 10, 0.5)", binomial(2, 10, 0.5), 0.109375},
		{"2*pbinom(0, 10, 0.5)", binomial(0, 10, 0.5), 0.001953125},
		{"all", binomial(10, 10, 0.5), 0.001953125},
		{"even", binomial(5, 10, 0.5), 1},
		{"nothing", binomial(0, 0, 0.5), 1},
		{"pbeta(0.3, 2, 5)", beta(0.3, 2, 5), 0.579825},
		{"pbeta(0.5, 5000, 5000)", beta(0.5, 5000, 5000), 0.5},
	} {
		if math.Abs(c.got-c.want) > 1e-6*max(c.want, 1e-3) {
			t.Errorf("%s is %.9g, want %.9g", c.name, c.got, c.want)
		}
	}
}

// A JVM gives some names a new number in each run. Such names are equal in a comparison. So is code that is compiled
// differently.
func TestSameNames(t *testing.T) {
	before := parse(t, "[pool-1-thread-3 tid=7];a.Main$$Lambda$12.run_[0];a.B+0x00007f12.go_[1];$Proxy3.x_[j] 100\n"+
		"[pool-1-thread-9 tid=8];a.Main$$Lambda$12.run_[j] 50\n")
	after := parse(t, "[pool-1-thread-1 tid=99];a.Main$$Lambda$77.run_[j];a.B+0x00007fab.go_[i];$Proxy3.x_[i] 100\n"+
		"[pool-1-thread-2 tid=98];a.Main$$Lambda$77.run_[0] 50\n")
	r := compareTrees(t, before, after, Options{By: "method"})
	if len(r.Changes) != 0 || r.Significant != 0 {
		t.Errorf("%+v", r.Changes)
	}
	if got := len(r.c.tree.nodes); got != 5 {
		t.Errorf("%d nodes", got)
	}
}

// A changed path is reported at the place of its change, and not for each of its callers as well.
func TestTurning(t *testing.T) {
	before, after := parse(t, "a;b;c;d 5000\na;b;e 5000\n"), parse(t, "a;b;c;d 7000\na;b;e 3000\n")
	r := compareTrees(t, before, after, Options{By: ByPath})
	var told []string
	for _, ch := range r.Changes {
		if !ch.Significant || ch.Of != OfPath {
			t.Errorf("%+v", ch)
		}
		told = append(told, strings.Join(ch.Path, ";"))
	}
	slices.Sort(told)
	if got := strings.Join(told, " "); got != "a;b;c;d a;b;e" {
		t.Errorf("told: %s", got)
	}
	if r.Compared != 1 && r.Compared != 2 { // c and d are the same samples
		t.Errorf("%d hypotheses", r.Compared)
	}
}

// A recording by CPU time has as many independent looks as samples. Nanoseconds are not looks.
func TestTimeIsNoCount(t *testing.T) {
	before, after := parse(t, "a;b 500000000\na;c 500000000\n"), parse(t, "a;b 520000000\na;c 480000000\n")
	for _, tree := range []*output.Tree{before, after} {
		tree.Weight = profile.CPUTime
	}
	r := compareTrees(t, before, after, Options{By: "method"})
	if r.Significant != 0 || r.Before.Looks != 100 {
		t.Errorf("%d significant of %d looks", r.Significant, r.Before.Looks)
	}
}

// TestStanding: if a thread waits in one place for the whole recording, all looks at it together count as one. If many
// threads come and go, each counts.
func TestStanding(t *testing.T) {
	stacks := map[string]*profile.Stack{}
	for _, name := range []string{"Here.wait", "There.wait", "Elsewhere.wait"} {
		stacks[name] = &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: name}, Kind: profile.C2}}}
	}
	record := func(where func(i, thread int) string) *simulated {
		s := &simulated{timed: true}
		for i := range 1000 {
			for thread := range 10 {
				s.samples = append(s.samples, profile.Sample{At: profile.Instant{Ticks: int64(i) * int64(10*time.Millisecond)},
					Thread: profile.Thread{TID: thread + 1}, Stack: stacks[where(i, thread)], Wall: true, State: profile.Parked})
			}
		}
		return s
	}
	one := func(name string) *simulated {
		return record(func(_, thread int) string {
			if thread == 0 {
				return name
			}
			return "Elsewhere.wait"
		})
	}
	if r := compare(t, one("Here.wait"), one("There.wait"), Options{By: "method"}); r.Significant != 0 {
		t.Errorf("one thread that stands elsewhere is called a change: %+v", r.Changes)
	}
	some := func(name string) *simulated {
		return record(func(i, thread int) string {
			if (i*7+thread*3)%10 == 0 {
				return name
			}
			return "Elsewhere.wait"
		})
	}
	if r := compare(t, some("Here.wait"), some("There.wait"), Options{By: "method"}); r.Significant == 0 {
		t.Errorf("all threads go elsewhere, and that is no change: %+v", r.Changes)
	}
}

// TestBurst: a thousand samples in one of ten seconds are less evidence than a thousand spread over all ten.
func TestBurst(t *testing.T) {
	a := &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "a"}}}}
	var burst []*profile.Stack
	for _, name := range []string{"b", "c", "d", "e"} {
		burst = append(burst, &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: name}},
			{Func: &profile.Func{Name: "load"}}}})
	}
	record := func(isLoad func(i int) bool) *simulated {
		s := &simulated{timed: true}
		for i := range 10_000 {
			sample := profile.Sample{At: profile.Instant{Ticks: int64(i) * 1e6}, Thread: profile.Thread{TID: 1}, Stack: a}
			if isLoad(i) {
				sample.Stack = burst[i%4]
			}
			s.samples = append(s.samples, sample)
		}
		return s
	}
	none := record(func(int) bool { return false })
	some := record(func(i int) bool { return i >= 4000 && i < 5000 })
	if r := compare(t, none, some, Options{By: "method"}); r.Significant != 0 {
		t.Errorf("one burst is called a change: %+v", r.Changes)
	}
	if r := compare(t, none, record(func(i int) bool { return i%10 == 0 }), Options{By: "method"}); r.Significant == 0 {
		t.Error("a thousand samples that are spread are not called a change")
	}
}

func TestJSON(t *testing.T) {
	before, after := parse(t, "a;b 900\na;c 100\n"), parse(t, "a;b 500\na;\u202ec 500\n")
	r := compareTrees(t, before, after, Options{By: "method", Top: 1})
	r.Before.Name, r.After.Name = "x", "y"
	var out bytes.Buffer
	if err := r.JSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Changes []struct {
			Name             string
			Before, After, P *float64
			Significant      *bool
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Changes) != 3 || got.Changes[0].P == nil || got.Changes[0].Significant == nil ||
		!*got.Changes[0].Significant {
		t.Errorf("%+v", got)
	}
	if strings.ContainsRune(out.String(), '\u202e') {
		t.Error("text that turns the direction of text is written as it is")
	}
	out.Reset()
	if err := r.Text(&out); err != nil || strings.ContainsRune(out.String(), '\u202e') {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// No file makes a comparison panic or return NaN.
func TestOddSides(t *testing.T) {
	for name, c := range map[string][2]string{
		"one sample":       {"a 1\n", "b 1\n"},
		"all in one place": {"a;b 100000\n", "a;b 1\n"},
		"huge":             {"a;b 9007199254740992\n", "a;c 1\n"},
		"recursion":        {strings.Repeat("a;", 500) + "a 40\n", "a 50\n"},
		"no counts":        {"a;b 0\na;c 5\n", "a;b 3\na;c 2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := compareTrees(t, parse(t, c[0]), parse(t, c[1]), Options{By: "method"})
			var out bytes.Buffer
			if err := r.JSON(&out); err != nil { // NaN is not JSON
				t.Error(err)
			}
			for _, write := range []func() error{
				func() error { return r.Text(&out) },
				func() error { return r.Page(&out, "t", nil) },
				func() error { return r.SVG(&out, "t") },
			} {
				if err := write(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	c := New()
	if err := c.AddSource(Before, &simulated{timed: true}, Reading{}); err != ErrNoSamples {
		t.Errorf("%v", err)
	}
}

// TestLooksThatCountForSeveral: samples that count for several have less information than their sum suggests.
func TestLooksThatCountForSeveral(t *testing.T) {
	cpu := recording.Info{Format: recording.JFR, Meta: profile.Meta{Mode: profile.ModeCPU}}
	wall := recording.Info{Format: recording.JFR, Meta: profile.Meta{Mode: profile.ModeWall}}
	text := recording.Info{Format: recording.Collapsed}
	told := recording.Info{Format: recording.Collapsed, Summary: &profile.Summary{Effective: 25}}
	a := adder{timed: true, total: 100, looks: 100, lookSquares: 4*5*5 + 80} // four count for five each, 80 for one
	for _, c := range []struct {
		info *recording.Info
		want int64
	}{{&cpu, 55}, {&wall, 100}, {&text, 0}, {&told, 25}} {
		if got := a.effective(c.info); got != c.want {
			t.Errorf("%s %s: %d looks, and not %d", c.info.Format, c.info.Meta.Mode, got, c.want)
		}
	}
	if got := assumedLooks(profile.Samples, 100, 55, 0); got != 55 {
		t.Errorf("100 samples of 55 looks are %d", got)
	}
	if got := assumedLooks(profile.Samples, 100, 0, 0); got != 100 {
		t.Errorf("100 samples, of which no more is known, are %d", got)
	}
}

// TestPageSaysWhatIsSeen: if no change is proven, the page explains its colours, and which frames to look at.
func TestPageSaysWhatIsSeen(t *testing.T) {
	for after, want := range map[int]string{
		502: "All frames are grey: noise alone makes such changes.",
		600: "Pale frames changed by more than noise within the recordings.",
		990: "",
	} {
		r := compareTrees(t, parse(t, "a;b 500\na;c 500\n"), parse(t, fmt.Sprintf("a;b %d\na;c %d\n", after, 1000-after)),
			Options{By: "method"})
		_, o := r.picture("t")
		if got := seen(o.Diff); got != want {
			t.Errorf("%d of 1000: %q, want %q; %s", after, got, want, r.Verdict())
		}
	}
	told := func(all ...flame.Told) *flame.Diff { return &flame.Diff{Told: all} }
	if got := seen(told(flame.WithinNoise, flame.Perhaps)); !strings.HasPrefix(got, "Pale frames would be significant") {
		t.Errorf("%q", got)
	}
}

// TestEntriesAreOne: the frames with which a thread begins are merged, and have no changes of their own.
func TestEntriesAreOne(t *testing.T) {
	stack := func(leaf string) *profile.Stack {
		s := &profile.Stack{}
		for _, name := range []string{leaf, "call_stub", "JavaThread::run", "start_thread", "__clone3"} {
			s.Frames = append(s.Frames, profile.Frame{Func: &profile.Func{Name: name}, Kind: profile.Native})
		}
		s.Frames[0].Kind = profile.C2
		return s
	}
	for all, want := range map[bool]int{false: 4, true: 7} {
		c := New()
		for side, leaf := range []string{"a.B.c", "a.B.d"} {
			src := &simulated{timed: true, samples: []profile.Sample{
				{Stack: stack(leaf), At: profile.Instant{Wall: 1}}, {Stack: stack(leaf), At: profile.Instant{Wall: 2}}}}
			if err := c.AddSource(Side(side), src, Reading{AllFrames: all}); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(c.tree.nodes); got != want {
			t.Errorf("all frames %v: %d nodes, want %d", all, got, want)
		}
	}
}

// AddTree adds a recording without times. looks is its number of samples, or 0 if that is not known.
func (c *Comparison) AddTree(to Side, t *output.Tree, looks int64) error {
	if t.Total <= 0 {
		return ErrNoSamples
	}
	s := &c.sides[to]
	first := s.begin(run{total: t.Total}, false)
	s.weight = t.Weight
	s.total += t.Total
	s.looks += assumedLooks(t.Weight, t.Total, looks, 0)
	at := make([]int32, len(t.Nodes))
	for n := 1; n < len(t.Nodes); n++ {
		from := &t.Nodes[n]
		if at[n] = c.tree.child(at[from.Parent], c.tree.label(t.Labels[from.Name])); at[n] == 0 {
			return errTooMuch
		}
		c.tree.nodes[at[n]].inlined = c.tree.nodes[at[n]].inlined || t.Labels[from.Name].Kind == output.LabelInlined
		if from.Self > 0 {
			c.tree.nodes[at[n]].self[to] += from.Self
			s.cells[cellOf(first, at[n])] += from.Self
		}
	}
	return nil
}
