//go:build linux

package session

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler/events"
	"goprof/sampler/look"
)

const testAmount = 512 << 10

// sharesRecording is a recording of allocations. The test itself adds its samples and the contents of buffers.
func sharesRecording(sink Sink) *recording {
	part := eventPart{of: &profile.EventKind{Name: profile.EventAlloc, Unit: profile.Bytes}, kind: profile.Inlined}
	r := &recording{habits: habitsOf(false), Session: &Session{dir: &directory{}}, profile: profile.New(),
		opt: RecordOptions{Event: &EventPlan{Name: "alloc", Unit: profile.Bytes, parts: []eventPart{part},
			list: []events.Event{{Name: "alloc", Retired: &events.Retired{}}}}},
		events: &eventReader{frames: map[string]*profile.Func{}}}
	r.profile.Meta.Weight = profile.Bytes
	if sink != nil {
		r.timed = &telling{sink: sink}
	}
	r.shares = &allocShares{contents: events.NewContents(process.Memory(nil)), part: &r.opt.Event.parts[0], values: true,
		classes: map[string]*allocClass{}, unseen: profile.Frame{Func: &profile.Func{Name: noStackSeen}, Kind: profile.Gap}}
	return r
}

// meet adds a sample of a class at the end of a buffer, under a caller.
func (r *recording) meet(t *testing.T, class, caller string) {
	t.Helper()
	stack := profile.Stack{Frames: []profile.Frame{r.events.frame(class, profile.Inlined),
		r.events.frame(caller, profile.C2)}}
	snap := look.Look{Event: look.Hit{Number: 1, Amount: testAmount}}
	if !r.hold(&snap, "", &stack, class) {
		t.Fatalf("%s is not held", class)
	}
}

// read adds a copied buffer with so many bytes of each class.
func (a *allocShares) read(bytes map[string]float64) {
	all := 0.0
	for _, n := range bytes {
		all += n
	}
	a.contents.Hold(all)
	a.addCopy(all)
	for name, n := range bytes {
		a.class(name).addCopy(n, all)
	}
}

// lines returns the bytes of each stack, by "caller class".
func (r *recording) lines() map[string]float64 {
	lines := map[string]float64{}
	name := func(f *profile.Func, _ profile.Kind) string { return f.Name }
	r.profile.EachLine(name, func(path []string, n int64) { lines[strings.Join(path, " ")] += float64(n) })
	return lines
}

// TestSharesAreThoseOfContents: samples at the ends of buffers meet one class in 85 of 100 cases, and another never.
// The bytes of classes are those in the buffers' contents. Within a class, the bytes of stacks are proportional to
// their samples.
func TestSharesAreThoseOfContents(t *testing.T) {
	sink := &told{looks: map[profile.State]int64{}}
	r := sharesRecording(sink)
	const n = 2000
	for i := range n {
		switch k := i % 100; {
		case k < 85:
			r.meet(t, "Small", []string{"a", "a", "b"}[i%3])
		case k < 95:
			r.meet(t, "byte[]", "c")
		default:
			r.meet(t, "char[]", "d")
		}
		if i%3 == 0 {
			r.shares.read(map[string]float64{"byte[]": 50, "long[]": 25, "Small": 15, "char[]": 10})
		}
	}
	if apart, sure := r.shares.apart(); !sure || math.Abs(apart-0.70) > 0.01 {
		t.Errorf("%.2f apart, more than chance: %v", apart, sure)
	}
	r.endShares()
	all := float64(n * testAmount)
	lines := r.lines()
	for line, want := range map[string]float64{"a Small": 0.10, "b Small": 0.05, "c byte[]": 0.50, "d char[]": 0.10,
		noStackSeen + " long[]": 0.25} {
		if got := lines[line] / all; math.Abs(got-want) > 0.003 {
			t.Errorf("%s has %.4f, want %.4f", line, got, want)
		}
	}
	told, sum := 0.0, 0.0
	for _, s := range sink.samples {
		told += float64(s.Bytes)
	}
	for _, bytes := range lines {
		sum += bytes
	}
	if sum > all || sum < all-10 || told != sum || len(sink.samples) != n+1 {
		t.Errorf("%.0f bytes in stacks, %.0f told by %d samples, %.0f stood for", sum, told, len(sink.samples), all)
	}
	if c := r.contents(r.opt.Event); c.Unmet != 1 || math.Abs(float64(c.UnmetBytes)/all-0.25) > 0.003 {
		t.Errorf("%+v", c)
	}
	if r.profile.Counts.Samples() != n {
		t.Errorf("%d samples", r.profile.Counts.Samples())
	}
}

// TestSharesWithoutContents: if no buffer was read, each sample stands for its own amount.
func TestSharesWithoutContents(t *testing.T) {
	r := sharesRecording(nil)
	for i := range 100 {
		r.meet(t, []string{"A", "B", "B", "B"}[i%4], "a")
		if i == 50 {
			r.payAll() // as if a user looked at the recording now
		}
	}
	r.endShares()
	if lines := r.lines(); lines["a A"] != 25*testAmount || lines["a B"] != 75*testAmount {
		t.Errorf("%v", lines)
	}
}

// TestSharesOfLittle: the first contents are misleading. Classes that got too many bytes give nothing back, but all
// classes together have no more bytes than samples stand for.
func TestSharesOfLittle(t *testing.T) {
	r := sharesRecording(nil)
	r.shares.read(map[string]float64{"A": 1000})
	for range 100 {
		r.meet(t, "A", "a")
		r.meet(t, "B", "b")
	}
	r.shares.read(map[string]float64{"A": 1e6, "B": 3e6})
	for range 20 {
		r.meet(t, "B", "b")
	}
	r.endShares()
	lines := r.lines()
	if sum, all := lines["a A"]+lines["b B"], 220.0*testAmount; sum > all || sum < all-10 {
		t.Errorf("%.0f bytes, samples stand for %.0f", sum, all)
	}
}

// TestSharesOutside: each object outside of buffers counts by itself.
func TestSharesOutside(t *testing.T) {
	r := sharesRecording(nil)
	for range 100 {
		r.meet(t, "Small", "a")
		r.meet(t, "Large", "b")
		r.shares.read(map[string]float64{"Small": 3000})
		r.shares.takeBeside("Large", &look.Hit{Own: 500, Weight: 2})
	}
	r.endShares()
	all := 200.0 * testAmount
	if lines := r.lines(); math.Abs(lines["a Small"]/all-0.75) > 0.001 || math.Abs(lines["b Large"]/all-0.25) > 0.001 {
		t.Errorf("%v", lines)
	}
}

// TestSharesByChance: the ends of buffers are independent of the program. Shares only differ by chance, so the
// recording does not count as in step.
func TestSharesByChance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		r := sharesRecording(nil)
		for range 20 + random.IntN(200) {
			r.meet(t, []string{"A", "B", "B", "C", "C", "C"}[random.IntN(6)], "a")
			b := map[string]float64{}
			for range 50 {
				b[[]string{"A", "B", "B", "C", "C", "C"}[random.IntN(6)]] += 1000
			}
			r.shares.read(b)
		}
		if apart, sure := r.shares.apart(); sure {
			t.Errorf("%.3f apart is taken for more than chance", apart)
		}
	}
}

// TestSharesAreReleased: before a profile gives its stacks away, held samples get their bytes.
func TestSharesAreReleased(t *testing.T) {
	r := sharesRecording(nil)
	for i := range 3 * maxHeld {
		r.meet(t, string(rune('A'+i%2000)), "a")
	}
	if r.shares.held > maxHeld {
		t.Errorf("%d samples are held", r.shares.held)
	}
	r.releaseHeld()
	sum := 0.0
	for _, bytes := range r.lines() {
		sum += bytes
	}
	if sum != 3*maxHeld*testAmount || r.shares.held != 0 {
		t.Errorf("%.0f bytes; %d are held", sum, r.shares.held)
	}
}

// TestSharesBeforeCounts: on a starved machine, the account is asked for before the engine has counted anything.
func TestSharesBeforeCounts(t *testing.T) {
	a := &allocShares{paid: 8}
	a.correct(nil)
	counts := []profile.EventCount{{Stood: 1}}
	if a.correct(counts); counts[0].Stood != 9 {
		t.Errorf("%+v", counts)
	}
	(*allocShares)(nil).correct(counts)
}
