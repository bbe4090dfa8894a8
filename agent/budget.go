//go:build linux

package agent

import (
	"slices"
	"time"
)

// budget limits what goprof costs the host. Both goprof's CPU time and its pauses of threads count as cost.
//
// Samples are the largest cost. If the cost is too high, fewer samples are taken. To remove half of the samples or
// more, the interval is doubled. To remove fewer, the budget sets a maximum number of samples for a JVM. The maximum is
// the same for all JVMs, so a busy JVM takes nothing from the others.
//
// Attaching to a JVM is expensive. Half of the budget is reserved for attaching. The unused part of that half is kept
// for at most 20 s, so that goprof can soon attach to a new JVM. A new agent starts with enough for one JVM.
//
// If goprof has spent more than the budget, it spends less in the next windows until the excess is paid back. So the
// limit holds in each minute, the first included.
type budget struct {
	max      float64 // share of the host; 0: no limit
	cpus     float64
	base     time.Duration // the configured interval
	slower   int           // the current interval is slower * base
	factor   float64       // the share of the then due samples that may be taken
	began    time.Time
	at       time.Time
	excess   float64       // CPU time over the budget so far, in seconds of the whole host
	own      time.Duration // goprof's CPU time at the last comparison
	paused   time.Duration // pauses since the last comparison
	attached time.Duration // the part of own since then that went into attaching
	debt     time.Duration // CPU time for attaching that is not yet paid
	others   time.Duration // the part of attached that Others used
	debtAt   time.Time
	rate     float64 // goprof's CPU time per second in the last window without an attachment
	aside    float64 // the part of the budget for attaching that Others may use
}

const (
	// holdEvery is the time between two comparisons of cost and budget. beginEvery replaces it during beginFor and
	// after an attachment. In that time the cost of a sample is not yet known, and the first walks cost most.
	holdEvery  = 10 * time.Second
	beginEvery = 2 * time.Second
	beginFor   = time.Minute
	// payWithin is the time in which an excess is paid back. mostPart is the largest part of the budget that may be
	// used for paying back.
	payWithin = 15 * time.Second
	mostPart  = 0.9
	// mostSlower limits the growth of the interval.
	mostSlower = 1 << 10
	// attachPart is the part of the budget for attaching. It may be spent up to attachAhead in advance.
	attachPart  = 0.5
	attachAhead = 20 * time.Second
	// near is the part of the budget that the agent aims at. If less than low of that is used, the rates grow again.
	near, low = 0.9, 0.7
)

func (b *budget) begin(s Settings, w World) {
	b.max, b.cpus = s.MaxCPU, float64(max(w.CPUs(), 1))
	b.base, b.slower, b.factor = s.interval(), 1, 1
	if b.began.IsZero() { // otherwise the configuration was reloaded, and the account continues
		b.began = time.Now()
		b.at, b.debtAt, b.debt = b.began, b.began, max(b.most()-1, 0)
		b.excess = w.Own().Seconds() / b.cpus
		b.own = w.Own()
	}
}

// forAttaching returns the CPU time per second that attaching may use.
func (b *budget) forAttaching() float64 { return b.max * b.cpus * (attachPart - b.aside) }

// most returns the largest debt at which goprof still attaches to another JVM.
func (b *budget) most() time.Duration { return time.Duration(float64(attachAhead) * b.forAttaching()) }

// interval returns the CPU time between two samples of a JVM whose samples are all taken.
func (b *budget) interval() time.Duration { return b.base * time.Duration(b.slower) }

// intervalOf returns the CPU time that a sample of a recording stands for.
func (b *budget) intervalOf(r *record) time.Duration {
	if r.fixed {
		return b.base
	}
	return time.Duration(float64(b.interval()) / max(r.share, leastShare))
}

// leastShare is the share of its samples that every JVM keeps at least.
const leastShare = 0.02

// mayAttach reports whether the budget allows an attachment.
func (b *budget) mayAttach(now time.Time) bool {
	if b.max == 0 {
		return true
	}
	b.debt = max(b.debt-time.Duration(float64(now.Sub(b.debtAt))*b.forAttaching()), 0)
	b.debtAt = now
	return b.debt < b.most()
}

// expense is what goprof used from the beginning of an attachment to its end.
type expense struct {
	cpu  time.Duration // of all of goprof
	took time.Duration
}

// meter begins to measure an expense. The returned function ends the measurement.
func (a *Agent) meter() func() expense {
	own, at := a.world.Own(), time.Now()
	return func() expense { return expense{a.world.Own() - own, time.Since(at)} }
}

// alone estimates the cost of an attachment without the samples of other JVMs that were taken meanwhile. It assumes
// that those samples cost as much as in the window before. The kernel's clocks cannot separate the two, because
// goroutines change their OS threads and the garbage collector works for all of them.
func (b *budget) alone(e expense) time.Duration {
	return max(e.cpu-time.Duration(b.rate*float64(e.took)), 0)
}

func (b *budget) charge(cost time.Duration) {
	b.debt += cost
	b.attached += cost
}

// count adds the cost of a recording since the last count: its pauses, hits and samples.
func (b *budget) count(a *Agent, r *record) {
	if r.control == nil {
		return
	}
	st := r.control.Latest()
	now := countsOf(&st)
	a.metrics.lost.Add(max(now.lost-r.counted.lost, 0))
	a.metrics.leftOut.Add(max(now.leftOut-r.counted.leftOut, 0))
	hits := max(now.hits-r.counted.hits, 0)
	r.hits += hits
	paused := max(now.paused-r.counted.paused, 0) + time.Duration(hits)*hitCost
	a.metrics.paused.Add(int64(paused))
	b.paused += paused
	r.due += float64(max(now.taken+now.lost-r.counted.taken-r.counted.lost, 0)) / max(r.share, leastShare)
	r.counted = now
}

func (b *budget) govern(r *record) {
	if r.control != nil && !r.control.Govern(b.interval(), r.share) {
		r.fixed, r.share = true, 1
	}
}

// hold compares the cost with the budget, and changes the rates.
func (b *budget) hold(a *Agent, now time.Time) {
	passed := now.Sub(b.at)
	every := holdEvery
	if now.Sub(b.began) < beginFor || b.attached > 0 {
		every = beginEvery
	}
	if passed < every {
		return
	}
	var records []*record
	for _, g := range a.guests {
		if g.record == nil {
			continue
		}
		for _, r := range g.record.all() {
			if r.control != nil && !r.dropped {
				b.count(a, r)
				records = append(records, r)
			}
		}
		b.dropDear(a, g, passed, now)
	}
	own, others := a.world.Own(), a.others.spent()
	b.attached, b.others = b.attached+others-b.others, others
	host := float64(passed) * b.cpus
	used := float64(own-b.own+b.paused) / host
	steady := max(float64(own-b.own+b.paused-b.attached), 0) / host
	if !a.attaches() { // the cost of an attachment under way is charged later
		b.rate = max(float64(own-b.own-b.attached), 0) / float64(passed)
	}
	a.metrics.used.Store(used)
	before, slower := b.factor, b.slower
	if b.max > 0 {
		b.adjust(steady, used-steady, passed)
	}
	if b.slower != slower {
		a.world.SetInterval(b.interval())
	}
	if before != 1 || b.factor != 1 || b.slower != slower {
		b.share(a, records, slower, now)
	}
	for _, r := range records {
		r.due = 0
	}
	b.at, b.own, b.paused, b.attached = now, own, 0, 0
	a.metrics.interval.Store(int64(b.interval()))
	a.metrics.factor.Store(b.factor)
}

// adjust sets the share of the samples that may be taken from now on. steady and attaching are shares of the host's CPU
// time during passed.
func (b *budget) adjust(steady, attaching float64, passed time.Duration) {
	b.excess = max(b.excess+(steady+attaching-b.max)*passed.Seconds(), 0)
	left := b.max*near - min(attaching+b.excess/payWithin.Seconds(), b.max*mostPart)
	switch {
	case steady > left:
		b.factor *= max(left/steady, 0.25)
	case steady < left*low && b.factor < 1:
		b.factor = min(b.factor*1.25, 1)
	case steady < left*low/2 && b.slower > 1:
		b.slower /= 2
		b.factor = 0.6 // with 0.5 the number of samples would stay the same
	}
	for b.factor < 0.5 && b.slower < mostSlower {
		b.slower *= 2
		b.factor *= 2
	}
	b.factor = min(max(b.factor, leastShare), 1)
}

// share sets the share of each recording. It cuts the batches first, because samples of the next batch have another
// interval.
func (b *budget) share(a *Agent, records []*record, slower int, now time.Time) {
	due := make([]float64, len(records))
	for i, r := range records {
		due[i] = r.due
	}
	most := fill(due, b.factor)
	for i, r := range records {
		share := 1.0
		if due[i] > most {
			share = max(most/due[i], leastShare)
		}
		if share == r.share && slower == b.slower {
			continue
		}
		if r.event.Name == "" { // a sample of an event carries its own amount
			was := b.slower
			b.slower = slower
			a.cut(r, now, false)
			b.slower = was
		}
		r.share = share
		b.govern(r)
	}
}

// fill returns the maximum number of samples of one recording at which all recordings together take the given part of
// what is due.
func fill(due []float64, part float64) (most float64) {
	sorted := slices.Sorted(slices.Values(due))
	left := 0.0
	for _, d := range sorted {
		left += d * part
	}
	for i, d := range sorted {
		if most = left / float64(len(sorted)-i); d > most {
			return most
		}
		left -= d
	}
	if n := len(sorted); n > 0 {
		return sorted[n-1]
	}
	return 0
}
