//go:build linux

package agent

import (
	"fmt"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/sampler/ptrace"
	"goprof/session"
)

// The batches of many JVMs stay spread over time. That holds also after a reload, which cuts all of them at once.
func TestBatchesAreSpread(t *testing.T) {
	s := Default()
	s.MaxCPU = 0
	d := drive(t, s)
	const jvms = 30
	for pid := 1; pid <= jvms; pid++ {
		d.w.start(pid, "Shop")
	}
	work := func(beats int) {
		for range beats {
			for pid := 1; pid <= jvms; pid++ {
				d.w.use(pid, 100*time.Millisecond)
			}
			d.beats(1)
		}
	}
	work(60)
	d.take(s)
	due := map[time.Duration]int{}
	for _, g := range d.guests {
		if g.record == nil {
			t.Fatalf("process %d is %v", g.PID, g.state)
		}
		due[d.now.Sub(g.record.cut)]++
	}
	for ago, n := range due {
		if n > jvms/5 {
			t.Errorf("%d of %d were cut %v ago", n, jvms, ago)
		}
	}
}

// If goprof uses more than it may, it takes fewer samples: first of the JVM with the most.
func TestBudgetIsHeldFairly(t *testing.T) {
	d := drive(t, Default())
	d.w.start(8, "Small")
	d.w.start(9, "Large")
	for range 90 {
		d.w.use(8, 50*time.Millisecond)
		d.w.use(9, time.Second)
		d.w.mu.Lock()
		// One JVM has 10 samples a second, the other 190, of 200 us each: twice the 20 ms that are 1 % of two CPUs.
		for pid, n := range map[int]float64{8: 10, 9: 190} {
			j := d.w.jvms[pid]
			every := max(float64(d.w.interval)/float64(time.Second/19), 1)
			taken := int64(n * j.share / every)
			j.st.Taken += taken
			d.w.own += time.Duration(taken) * 200 * time.Microsecond
		}
		d.w.mu.Unlock()
		d.beats(1)
	}
	small, large := d.guests[8].record, d.guests[9].record
	if small.share < large.share || large.share == 1 && d.budget.slower == 1 {
		t.Errorf("shares %.2f and %.2f, %d times slower", small.share, large.share, d.budget.slower)
	}
	if used := d.Metrics().Counts().Used; used > 0.011 {
		t.Errorf("%.4f of the host", used)
	}
}

// The share holds for each minute: for the first one, when the first samples of all JVMs cost most, and for one in
// which many JVMs come after a long rest. The agent attaches to them one after the other, and pays back what was too
// much.
func TestEachMinuteIsWithinBudget(t *testing.T) {
	d := drive(t, Default())
	d.w.dear = 200 * time.Millisecond
	jvms := 0
	come := func(n int) {
		for range n {
			jvms++
			d.w.start(jvms, "Busy")
		}
	}
	var own []time.Duration
	for beat := range 600 {
		if beat == 0 || beat == 240 {
			come(5)
		}
		for pid := 1; pid <= jvms; pid++ {
			d.w.use(pid, 300*time.Millisecond)
		}
		d.w.mu.Lock()
		d.w.own += d.w.sampled(beat%240 < 20) + 4*time.Millisecond
		own = append(own, d.w.own)
		d.w.mu.Unlock()
		d.beats(1)
	}
	most, from := time.Duration(0), 0
	for i := range own {
		if n := own[i] - own[max(i-60, 0)]; n > most {
			most, from = n, i-60
		}
	}
	if allowed := 1200 * time.Millisecond; most > allowed+allowed/10 {
		t.Errorf("%v of CPU time in the minute from second %d on; 1%% of two CPUs is %v", most, from, allowed)
	}
	for pid := 1; pid <= jvms; pid++ {
		if d.w.attached[pid] != 1 {
			t.Errorf("process %d was attached to %d times", pid, d.w.attached[pid])
		}
	}
}

// sampled takes a second's samples of the JVMs that are attached to, at most six of each. It returns what they cost:
// five times as much while caches are cold.
func (w *fakeWorld) sampled(cold bool) (cost time.Duration) {
	const base = float64(time.Second / 19)
	for pid, j := range w.jvms {
		if w.attached[pid] == 0 {
			continue
		}
		taken := int64(6 * j.share * base / max(float64(w.interval), base))
		j.st.Taken += taken
		cost += time.Duration(taken) * 300 * time.Microsecond
	}
	if cold {
		cost *= 5
	}
	return cost
}

func TestFill(t *testing.T) {
	for _, c := range []struct {
		due  []float64
		part float64
		want float64
	}{
		{[]float64{10, 190}, 0.5, 90},
		{[]float64{10, 10}, 0.5, 5},
		{[]float64{1, 2, 3}, 1, 3},
		{nil, 0.5, 0},
	} {
		if got := fill(c.due, c.part); fmt.Sprintf("%.3f", got) != fmt.Sprintf("%.3f", c.want) {
			t.Errorf("%v of %v: %v, want %v", c.part, c.due, got, c.want)
		}
	}
}

// Attaching is paid from half of the budget. goprof does not attach to many JVMs at once.
func TestAttachingIsBounded(t *testing.T) {
	b := budget{max: 0.01, cpus: 2}
	now := time.Now()
	n := 0
	for ; b.mayAttach(now); n++ {
		b.charge(200 * time.Millisecond)
	}
	if n != 1 { // 0.2 s are half of what 20 seconds allow at 1 % of two CPUs
		t.Errorf("%d at once", n)
	}
	if !b.mayAttach(now.Add(time.Second)) {
		t.Error("nothing is paid back")
	}
	b.charge(200 * time.Millisecond)
	if b.mayAttach(now.Add(10*time.Second)) || !b.mayAttach(now.Add(22*time.Second)) {
		t.Error("the debt does not go down by 10 ms a second")
	}
}

// An attachment is charged its own cost alone: what samples of other JVMs cost meanwhile is not charged to it.
func TestAttachingPaysForItself(t *testing.T) {
	d := drive(t, Default())
	const sampling = 15 * time.Millisecond // what all JVMs' samples cost in a second
	for range 20 {
		d.w.own += sampling
		d.beats(1)
	}
	for _, took := range []time.Duration{0, time.Second, 4 * time.Second} {
		d.budget.attached = 0
		const itself = 6 * time.Millisecond
		meanwhile := time.Duration(took.Seconds() * float64(sampling))
		d.handle(event{cost: expense{cpu: itself + meanwhile, took: took}})
		if got := d.budget.attached.Round(time.Microsecond); got != itself {
			t.Errorf("an attachment that took %v is charged %v", took, got)
		}
	}
}

// TestAttachmentUnderWayIsNoRate: an attachment that takes longer than a window is charged whole, too.
func TestAttachmentUnderWayIsNoRate(t *testing.T) {
	d := drive(t, Default())
	d.beats(3)
	d.guests[7] = &guest{state: opening, record: &record{}}
	const itself = 3 * time.Second
	for range 3 {
		d.w.own += itself / 3
		d.now = d.now.Add(5 * time.Second)
		d.budget.hold(d.Agent, d.now)
	}
	delete(d.guests, 7)
	d.handle(event{cost: expense{cpu: itself, took: 15 * time.Second}})
	if got := d.budget.attached; got < itself*9/10 {
		t.Errorf("an attachment that used %v is charged %v", itself, got)
	}
}

// What a recording costs until it has begun is paid as attaching is. Otherwise all other JVMs would be sampled less
// for it.
func TestBeginningIsPaidAsAttaching(t *testing.T) {
	for _, begins := range []time.Duration{0, 400 * time.Millisecond} {
		s := Default()
		s.MaxCPU = 0.01
		d := drive(t, s)
		d.w.begins = begins
		d.w.start(1, "First")
		d.w.use(1, time.Second)
		d.beats(2)
		if d.stateOf(1) != recorded {
			t.Fatalf("the first one: %v", d.stateOf(1))
		}
		d.w.start(2, "Second")
		d.w.use(2, time.Second)
		d.beats(3)
		if want := begins == 0; (d.w.attached[2] == 1) != want {
			t.Errorf("a beginning costs %v: the second one was attached to %d times", begins, d.w.attached[2])
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"rate":   func(s *Settings) { s.Rate = 0 },
		"every":  func(s *Settings) { s.Every = time.Hour },
		"budget": func(s *Settings) { s.MaxCPU = 2 },
		"jvms":   func(s *Settings) { s.MaxJVMs = 0 },
		"engine": func(s *Settings) { s.Engine, s.Mode = session.PerfEngine, session.WallMode },
		"mode":   func(s *Settings) { s.Mode = "night" },
	} {
		s := Default()
		if change(&s); s.Check() == nil {
			t.Errorf("%s is not refused", name)
		}
	}
	s := Default()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestStopsLeftOutAreCounted: they are counted whatever their causes are.
func TestStopsLeftOutAreCounted(t *testing.T) {
	var st sampler.Stats
	st.Holds.LeftOut[ptrace.NoPriority], st.Holds.LeftOut[ptrace.Stalled] = 3, 4
	if n := countsOf(&st).leftOut; n != 7 {
		t.Errorf("%d", n)
	}
}
