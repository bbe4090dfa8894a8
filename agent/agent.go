//go:build linux

package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"goprof/diagnose"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/sampler"
	"goprof/session"
)

// Agent watches a host.
type Agent struct {
	world    World
	offer    func(*batch.Batch)  // must not block
	say      func(string)        // writes a line to the log
	hide     func(string) string // removes names from log lines
	watcher  func(pids []int)    // receives the JVMs that the rules want; may be nil
	told     []int
	others   *Others // nil: other processes are not sampled
	settings Settings
	reload   chan Settings
	events   chan event
	finder   finder
	guests   map[int]*guest
	budget   budget
	memory   memory
	metrics  *Metrics
	said     limiter
	running  sync.WaitGroup

	span       *countedTime
	rehearses  bool // rehearsing: no samples are taken yet
	begins     chan struct{}
	beats      int
	settled    chan struct{}
	settleOnce sync.Once
}

const (
	// beatEvery is the time between two rounds over the host.
	beatEvery = time.Second
	// releaseAfter is the time after which a nearly idle JVM is released.
	releaseAfter = time.Minute
	// mostOpening limits concurrent attachments, because each uses a whole CPU for a moment.
	mostOpening = 1
	// openAgain is the first delay before a failed attachment is tried again. The delay doubles up to openSeldom.
	openAgain, openSeldom = 30 * time.Second, time.Hour
	// openPatience limits how long an attachment may delay others. The memory of the JVM may not answer.
	openPatience = 30 * time.Second
	// endPatience limits the wait for the last batches.
	endPatience = 20 * time.Second
)

// New makes an agent. The caller checks the settings before.
func New(w World, s Settings, offer func(*batch.Batch), say func(string)) *Agent {
	a := &Agent{world: w, offer: offer, say: say, hide: func(s string) string { return s }, settings: s,
		reload: make(chan Settings, 1), events: make(chan event, 64), guests: map[int]*guest{},
		metrics: newMetrics(), span: newSpan(),
		begins: make(chan struct{}, 1), settled: make(chan struct{})}
	a.finder = finder{world: w, known: map[int]*seenProcess{}}
	return a
}

// Metrics returns the agent's counters. Any goroutine may call it.
func (a *Agent) Metrics() *Metrics { return a.metrics }

// Reload replaces the settings. Any goroutine may call it. JVMs that the new settings do not want are released.
func (a *Agent) Reload(s Settings) {
	select {
	case <-a.reload: // drop settings that Run has not taken yet
	default:
	}
	a.reload <- s
}

// Run watches until ctx is done. The last batches are offered before it returns.
func (a *Agent) Run(ctx context.Context) {
	tick := sampler.NewPulse(beatEvery, 0)
	defer tick.Stop()
	a.begin()
	for ; ; tick.Next(beatEvery, 0) {
		a.beat(ctx, time.Now())
		select {
		case <-ctx.Done():
			a.end()
			return
		case s := <-a.reload:
			a.take(s)
		case <-a.begins:
			a.perform()
		case e := <-a.events:
			a.handle(e)
			a.drain()
			a.wait(ctx, tick)
		case <-tick.C:
		}
	}
}

// drain handles the events that are already waiting.
func (a *Agent) drain() {
	for {
		select {
		case e := <-a.events:
			a.handle(e)
		default:
			return
		}
	}
}

// wait handles events until the next beat.
func (a *Agent) wait(ctx context.Context, tick *sampler.Pulse) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-a.events:
			a.handle(e)
		case <-a.begins:
			a.perform()
		case <-tick.C:
			return
		}
	}
}

func (a *Agent) begin() {
	a.budget.begin(a.settings, a.world)
	a.world.SetInterval(a.settings.interval())
	a.metrics.interval.Store(int64(a.settings.interval()))
	a.metrics.factor.Store(1)
}

func (a *Agent) end() {
	for _, g := range a.guests {
		a.release(g)
	}
	done := make(chan struct{})
	go func() {
		a.running.Wait()
		close(done)
	}()
	late := time.After(endPatience)
	for {
		select {
		case <-late:
			a.say(fmt.Sprintf("some JVMs were not let go within %v: their last batches are lost", endPatience))
			return
		case e := <-a.events:
			a.handle(e)
		case <-done:
			a.drain()
			return
		}
	}
}

// take begins to use new settings. It ends the recordings of JVMs that are no longer wanted, and restarts those that
// the new settings change. The budget is reset for all others.
func (a *Agent) take(s Settings) {
	old, now := a.settings, time.Now()
	for _, g := range a.guests {
		if g.record != nil {
			for _, r := range g.record.all() {
				a.cut(r, now, false) // samples of the next batch have another interval
			}
		}
	}
	a.settings = s
	restart := old.Mode != s.Mode || old.Engine != s.Engine || old.Rate != s.Rate || old.Pools != s.Pools
	for _, g := range a.guests {
		if g.state == denied {
			g.state, g.window = idle, time.Time{}
		}
		verdict := s.Choice.Judge(&g.Candidate, g.Version != "")
		if verdict == Unwanted {
			a.release(g)
			g.state = denied
		} else if restart || len(old.EventsOf(&g.Candidate)) != len(s.EventsOf(&g.Candidate)) {
			a.release(g)
		}
	}
	a.begin()
	for _, g := range a.guests {
		if g.record != nil {
			for _, r := range g.record.all() {
				r.share = 1 // the budget starts from its full rate
				a.budget.govern(r)
			}
		}
	}
	a.metrics.reloads.Add(1)
	a.say("the configuration was read again")
}

// beat makes one round: it finds the JVMs of the host, and attaches, samples and cuts batches as needed.
func (a *Agent) beat(ctx context.Context, now time.Time) {
	delayed := a.metrics.delayed.Load()
	news := a.finder.beat(now)
	for _, pid := range news.gone {
		a.lose(pid)
	}
	for i := range news.born {
		a.meet(news.born[i], now)
	}
	hungry := a.readClocks(now)
	a.cutBatches(now)
	a.budget.hold(a, now)
	a.tryDear(now)
	a.holdMemory(now)
	a.wake(ctx, hungry, now)
	a.metrics.census(a.guests)
	a.tellWanted()
	a.leaveToOthers()
	a.noteSettled(delayed)
}

// Watch sets a function that receives the JVMs that the rules want, whenever their list changes. The function must not
// block. Call Watch before Run.
func (a *Agent) Watch(watcher func(pids []int)) { a.watcher = watcher }

func (a *Agent) tellWanted() {
	if a.watcher == nil {
		return
	}
	var pids []int
	for pid, g := range a.guests {
		if g.state != denied {
			pids = append(pids, pid)
		}
	}
	if slices.Sort(pids); !slices.Equal(pids, a.told) {
		a.told = pids
		a.watcher(pids)
	}
}

// meet adds a new JVM.
func (a *Agent) meet(j diagnose.JVM, now time.Time) {
	g := &guest{Candidate: Candidate{JVM: j}, said: map[string]bool{}}
	a.guests[j.PID] = g
	a.metrics.found.Add(1)
	a.world.Place(&g.Candidate)
	switch {
	case a.settings.Choice.Judge(&g.Candidate, false) == Unwanted:
		g.state = denied
	case j.Problem != nil:
		a.bar(g, *j.Problem, now)
	case j.Uptime > a.settings.Every:
		g.atWindow = a.world.CPU(j.PID) // a JVM that started in this window has used all its CPU time in it
		fallthrough
	default:
		g.window = now
	}
	g.read = g.atWindow
}

// lose forgets a JVM that has ended.
func (a *Agent) lose(pid int) {
	g := a.guests[pid]
	if g == nil {
		return
	}
	if g.record != nil {
		a.metrics.endedRecorded.Add(1)
	}
	a.release(g)
	delete(a.guests, pid)
	a.metrics.ended.Add(1)
}

// bar notes that a JVM cannot be recorded. Each cause is logged once for each JVM.
func (a *Agent) bar(g *guest, c diagnose.Cause, now time.Time) {
	g.state = barred
	g.retry = time.Time{}
	if c.Class != diagnose.NotJVM || c.Passes() {
		g.retry = now.Add(min(openAgain<<min(g.tries, 8), openSeldom))
		g.tries++
	}
	a.metrics.refuse(c.Name)
	if !g.said[c.Name] {
		g.said[c.Name] = true
		a.tell(now, fmt.Sprintf("%s is not recorded: %s: %s", a.called(g), c.Name, a.hide(c.Why)))
	}
}

// Hide sets a function that removes names of processes from the log. Call Hide before Run.
func (a *Agent) Hide(names func(string) string) { a.hide = names }

// called returns the name of a JVM for messages.
func (a *Agent) called(g *guest) string {
	return fmt.Sprintf("process %d (%s)", g.PID, a.hide(g.Name()))
}

// tell writes a line to the log, unless many lines were written in the last minute.
func (a *Agent) tell(now time.Time, text string) {
	if a.said.may(now) {
		a.say(text)
	} else {
		a.metrics.unsaid.Add(1)
	}
}

// readClocks reads the CPU time of each JVM. It returns the JVMs that have used enough for a sample, ordered by use. It
// releases a JVM that has used little for releaseAfter.
func (a *Agent) readClocks(now time.Time) (hungry []*guest) {
	interval := a.settings.interval()
	for _, g := range a.guests {
		if g.state == barred && !g.retry.IsZero() && now.After(g.retry) {
			g.state, g.window = idle, time.Time{}
		}
		if g.state != idle && g.state != recorded {
			continue
		}
		cpu := a.world.CPU(g.PID)
		if cpu < g.read {
			continue // the process is about to end
		}
		a.noteStop(g, cpu, now)
		if g.state == idle {
			a.metrics.unwatched.Add(int64(cpu - g.read))
		}
		g.read = cpu
		used, passed := cpu-g.atWindow, now.Sub(g.window)
		switch {
		case g.state == idle && (used >= interval || a.settings.Mode.IsWall()): // a thread that waits uses no CPU time
			hungry = append(hungry, g)
		case g.state == idle && passed >= a.settings.Every:
			g.window, g.atWindow = now, cpu
		case g.state == recorded && passed >= releaseAfter && !a.settings.Mode.IsWall():
			g.window, g.atWindow = now, cpu
			if float64(used) < float64(interval)*float64(passed)/float64(a.settings.Every)/2 {
				a.release(g)
			}
		}
	}
	slices.SortFunc(hungry, func(x, y *guest) int { return int(min(max(y.read-y.atWindow-(x.read-x.atWindow), -1), 1)) })
	return hungry
}

// noteStop logs that a signal or a debugger has stopped a JVM. A stopped JVM uses no CPU time, but must not be released
// as idle.
func (a *Agent) noteStop(g *guest, cpu time.Duration, now time.Time) {
	if cpu != g.read || !a.finder.isStopped(g.PID) {
		if g.still >= stillBeats {
			a.tell(now, a.called(g)+" goes on")
		}
		g.still = 0
		return
	}
	if g.still++; g.still == stillBeats {
		a.tell(now, a.called(g)+" is stopped, by a signal or a debugger: there are no samples of it until it goes on")
	}
	g.window, g.atWindow = now, cpu
}

// attaches reports whether an attachment is under way.
func (a *Agent) attaches() bool {
	for _, g := range a.guests {
		if g.state == opening {
			return true
		}
	}
	return false
}

// wake attaches to as many of the hungry JVMs as the budget and the settings allow.
func (a *Agent) wake(ctx context.Context, hungry []*guest, now time.Time) {
	busy, at := 0, 0
	for _, g := range a.guests {
		if g.record != nil {
			at++
			if g.state == opening && now.Sub(g.window) < openPatience {
				busy++
			}
		}
	}
	for _, g := range hungry {
		if now.Before(g.leave) {
			a.metrics.delayed.Add(1)
			continue
		}
		if at >= a.settings.MaxJVMs || !a.hasRoom(at) || busy >= mostOpening || !a.budget.mayAttach(now) {
			a.metrics.delayed.Add(1)
			return
		}
		a.open(ctx, g, now)
		busy++
		at++
	}
}

func (a *Agent) open(ctx context.Context, g *guest, now time.Time) {
	ctx, stop := context.WithCancel(ctx)
	r := &record{batches: newBatches(a.settings.Pools, a.span), stop: stop, cut: now, share: 1}
	for _, e := range a.settings.Events {
		r.beside = append(r.beside, &record{event: e, batches: newBatches(a.settings.Pools, a.span), cut: now, share: 1})
	}
	g.state, g.record, g.window, g.atWindow = opening, r, now, g.read
	settings, pid := a.settings, g.PID
	facts := g.Candidate
	a.running.Go(func() { a.serve(ctx, pid, facts, &settings, r) })
}

func (a *Agent) serve(ctx context.Context, pid int, facts Candidate, s *Settings, r *record) {
	send := func(e event) {
		e.pid, e.record = pid, r
		a.events <- e
	}
	spent := a.meter()
	t, err := a.world.Attach(pid)
	if err != nil {
		send(event{ended: true, err: err, cost: spent()})
		return
	}
	defer t.Close()
	t.Tell(&facts)
	if s.Choice.Judge(&facts, true) != Wanted {
		send(event{ended: true, unlike: true, jvm: &facts, cost: spent()})
		return
	}
	attributes := slices.Clone(s.Attributes)
	attributes.Add(t.Resource())
	for _, part := range r.all() {
		part.batches.belongTo(attributes)
	}
	send(event{jvm: &facts, cost: spent()})
	spent = a.meter()
	sum, err := t.Record(ctx, Recording{Settings: s, Interval: s.interval(), Sink: r.batches,
		Started: func(c Control) { send(event{control: c, cost: spent()}) },
		Beside:  a.besides(r, s.EventsOf(&facts), send)})
	send(event{ended: true, err: err, exec: err == nil && ctx.Err() == nil && !t.Alive(), killed: a.killed(&facts, &sum)})
}

// killed returns the message for a JVM that the kernel killed for lack of memory while it was recorded.
func (a *Agent) killed(j *Candidate, sum *profile.Summary) string {
	for _, n := range sum.Notes {
		if n.Name == profile.OutOfMemory {
			return fmt.Sprintf("process %d (%s): %s", j.PID, a.hide(j.Name()), a.hide(n.Text))
		}
	}
	return ""
}

func (a *Agent) handle(e event) {
	defer a.leaveToOthers()
	now := time.Now()
	a.budget.charge(a.budget.alone(e.cost))
	if e.jvm != nil {
		a.metrics.attached.Add(1)
	}
	if e.killed != "" {
		a.tell(now, e.killed)
	}
	g := a.guests[e.pid]
	if g == nil || g.record != e.record { // the recording was released
		if e.ended {
			a.settle(e.record, now)
		}
		return
	}
	switch {
	case e.ended:
		a.endRecording(g, e, now)
	case e.beside != nil:
		a.handleBeside(g, e, now)
	case e.control != nil:
		a.start(g.record, e.control)
	case e.jvm != nil:
		g.Candidate, g.state = *e.jvm, recorded
	}
}

func (a *Agent) start(r *record, c Control) {
	r.control = c
	if a.rehearses {
		c.Govern(a.budget.interval(), 0)
	} else {
		a.budget.govern(r)
	}
}

func (a *Agent) endRecording(g *guest, e event, now time.Time) {
	a.settle(g.record, now)
	g.record.stop()
	g.record, g.state, g.window = nil, idle, now
	g.atWindow = a.world.CPU(g.PID)
	g.read = g.atWindow
	switch {
	case e.unlike:
		g.Candidate, g.state = *e.jvm, denied
	case e.err != nil:
		if c := a.world.Explain(g.PID, e.err); c.Class != diagnose.Gone {
			a.bar(g, c, now)
		}
	case e.exec:
		if _, there := a.world.Brief(g.PID); there {
			a.metrics.execs.Add(1)
		} else {
			a.metrics.endedRecorded.Add(1) // lose no longer finds it as recorded
		}
	}
}

// release asks a recording to end. Its last batch comes with the event of its end.
func (a *Agent) release(g *guest) {
	if g.record == nil {
		return
	}
	g.record.stop()
	a.metrics.released.Add(1)
	g.record = nil
	if g.state == opening || g.state == recorded {
		g.state, g.window = idle, time.Time{}
	}
}

func (a *Agent) cutBatches(now time.Time) {
	for _, g := range a.guests {
		if r := g.record; r != nil && now.Sub(r.cut) >= a.settings.Every {
			r.cut = now
			for _, part := range r.all() {
				a.cut(part, now, false)
			}
		}
	}
}

// cut hands over the samples of a recording. It does not change when the next batch is due. Otherwise all batches of a
// host would be due at once after the budget or a reload has cut them all.
func (a *Agent) cut(r *record, now time.Time, last bool) {
	if b := r.batches.cut(now, a.budget.intervalOf(r), a.used(r), last); b != nil {
		a.metrics.batches.Add(1)
		if b.Event.Name == "" {
			a.metrics.samples.Add(b.Looks())
		} else {
			a.metrics.countEvent(b)
		}
		a.offer(b)
	}
}

// used returns the CPU time that the process has used since its recording began. It is 0 for recordings of events.
func (a *Agent) used(r *record) time.Duration {
	if r.control == nil || r.event.Name != "" || a.settings.Mode != session.CPUMode {
		return 0
	}
	return r.control.Latest().Times.Process
}

// settle cuts the last batch and adds up the recording's account.
func (a *Agent) settle(r *record, now time.Time) {
	for _, part := range r.all() {
		a.budget.count(a, part)
		a.cut(part, now, true)
		_, broken := part.batches.counts()
		a.metrics.broken.Add(broken)
	}
}
