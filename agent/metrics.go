//go:build linux

package agent

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goprof/profile/batch"
	"goprof/session"
)

// Metrics holds the counters of an agent. Any goroutine may read them.
type Metrics struct {
	found, ended, endedRecorded, attached, released, delayed, execs atomic.Int64
	evicted, leftOut                                                atomic.Int64
	batches, samples, lost, broken, unsaid, reloads                 atomic.Int64
	paused, unwatched, interval                                     atomic.Int64 // ns
	used, factor                                                    float
	began                                                           time.Time
	beat                                                            atomic.Int64 // ns since began

	mu      sync.Mutex
	states  [numStates]int
	refused map[string]int64 // by the name of the cause
	events  map[string]*eventMetrics
}

// eventMetrics are the counters of one event. Events come from the configuration, so they are few.
type eventMetrics struct{ samples, refused, dropped, retried int64 }

// float is an atomic float64.
type float struct{ bits atomic.Uint64 }

func (f *float) Store(x float64) { f.bits.Store(math.Float64bits(x)) }
func (f *float) Load() float64   { return math.Float64frombits(f.bits.Load()) }

func newMetrics() *Metrics {
	m := &Metrics{began: time.Now(), refused: map[string]int64{}, events: map[string]*eventMetrics{}}
	m.factor.Store(1)
	m.beat.Store(-int64(healthyWithin)) // there was no beat yet
	return m
}

func (m *Metrics) refuse(cause string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[cause]++ // bounded: causes have fixed names
}

// ofEvent returns the metrics of an event. The caller holds the lock.
func (m *Metrics) ofEvent(name string) *eventMetrics {
	e := m.events[name]
	if e == nil {
		e = new(eventMetrics)
		m.events[name] = e
	}
	return e
}

// refuseEvent counts an event that could not be recorded in a JVM.
func (m *Metrics) refuseEvent(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ofEvent(name).refused++
}

// dropEvent counts an event that was dropped because of its cost. retryEvent counts one that is tried again.
func (m *Metrics) dropEvent(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ofEvent(name).dropped++
}

func (m *Metrics) retryEvent(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ofEvent(name).retried++
}

func (m *Metrics) countEvent(b *batch.Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range b.Samples {
		m.ofEvent(b.Event.Name).samples += int64(len(b.Samples[i].Points))
	}
}

// census counts the JVMs in each state.
func (m *Metrics) census(guests map[int]*guest) {
	var states [numStates]int
	for _, g := range guests {
		if g.still >= stillBeats && (g.state == idle || g.state == recorded) {
			states[halted]++
		} else {
			states[g.state]++
		}
	}
	m.beat.Store(int64(time.Since(m.began))) // monotonic, because the wall clock may be set
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states = states
}

// Counts holds some metrics as numbers.
type Counts struct {
	Found, Ended, Batches, Samples, Lost int64
	LeftOut                              int64   // stops that were not begun, because they might have lasted too long
	Used                                 float64 // share of the host's CPU time in the last 10 s
}

// Healthy reports whether the agent has looked at its host lately.
func (m *Metrics) Healthy() bool {
	return time.Since(m.began)-time.Duration(m.beat.Load()) < healthyWithin
}

// healthyWithin is the largest age of the last beat in a healthy agent.
const healthyWithin = 30 * time.Second

// Counts returns some metrics as numbers.
func (m *Metrics) Counts() Counts {
	return Counts{Found: m.found.Load(), Ended: m.ended.Load(), Batches: m.batches.Load(), Samples: m.samples.Load(),
		Lost: m.lost.Load(), LeftOut: m.leftOut.Load(), Used: m.used.Load()}
}

// metric is one line of the output, or several lines with a label.
type metric struct {
	name, kind, help string
	value            func(m *Metrics) float64
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// exposed are the metrics without labels.
var exposed = []metric{
	{"jvms_found_total", "counter", "JVMs that were found.", func(m *Metrics) float64 { return float64(m.found.Load()) }},
	{"jvms_ended_total", "counter", "JVMs that have ended.", func(m *Metrics) float64 { return float64(m.ended.Load()) }},
	{"jvms_ended_recorded_total", "counter", "JVMs that have ended while they were recorded.",
		func(m *Metrics) float64 { return float64(m.endedRecorded.Load()) }},
	{"attached_total", "counter", "Attachments to a JVM.", func(m *Metrics) float64 { return float64(m.attached.Load()) }},
	{"released_total", "counter", "JVMs that were let go: they did next to nothing, or the rules no longer want them.",
		func(m *Metrics) float64 { return float64(m.released.Load()) }},
	{"delayed_total", "counter", "Times that a JVM had to wait to be attached to: the budget, max-jvms, max-memory.",
		func(m *Metrics) float64 { return float64(m.delayed.Load()) }},
	{"evicted_total", "counter", "JVMs that were let go for want of memory.",
		func(m *Metrics) float64 { return float64(m.evicted.Load()) }},
	{"execs_total", "counter", "Processes that became another program while they were recorded.",
		func(m *Metrics) float64 { return float64(m.execs.Load()) }},
	{"batches_total", "counter", "Batches with samples.", func(m *Metrics) float64 { return float64(m.batches.Load()) }},
	{"samples_total", "counter", "Samples in batches.", func(m *Metrics) float64 { return float64(m.samples.Load()) }},
	{"samples_lost_total", "counter", "Samples that were due and gave no stack.",
		func(m *Metrics) float64 { return float64(m.lost.Load()) }},
	{"samples_truncated_total", "counter", "Samples that do not reach their thread's root, of JVMs that were let go.",
		func(m *Metrics) float64 { return float64(m.broken.Load()) }},
	{"pause_seconds_total", "counter", "Time that threads of JVMs stood still for goprof, at probes by estimate.",
		func(m *Metrics) float64 { return seconds(m.paused.Load()) }},
	{"unwatched_cpu_seconds_total", "counter", "CPU time of JVMs while they were not recorded: they used too little.",
		func(m *Metrics) float64 { return seconds(m.unwatched.Load()) }},
	{"host_share", "gauge", "Share of the host's CPUs that goprof and its pauses took in the last 10 s.",
		func(m *Metrics) float64 { return m.used.Load() }},
	{"rate_hertz", "gauge", "Samples for each second of CPU time, of a JVM that has its whole share.",
		func(m *Metrics) float64 { return 1 / max(seconds(m.interval.Load()), 1e-6) }},
	{"rate_part", "gauge", "Part of these samples that the budget allows, of all JVMs together.",
		func(m *Metrics) float64 { return m.factor.Load() }},
	{"messages_unsaid_total", "counter", "Lines of the log that were left out, as there were too many.",
		func(m *Metrics) float64 { return float64(m.unsaid.Load()) }},
	{"reloads_total", "counter", "Times that the configuration was read again.",
		func(m *Metrics) float64 { return float64(m.reloads.Load()) }},
	{"cpu_seconds_total", "counter", "CPU time of goprof itself.",
		func(*Metrics) float64 { return session.OwnCPU().Seconds() }},
	{"resident_bytes", "gauge", "Memory of goprof itself.",
		func(*Metrics) float64 { return float64(session.OwnMemory()) }},
	{"uptime_seconds", "gauge", "How long the agent has been running.",
		func(m *Metrics) float64 { return time.Since(m.began).Seconds() }},
}

const prefix = "goprof_agent_"

// Write writes all metrics in Prometheus' text format.
func (m *Metrics) Write(w io.Writer) error {
	for _, e := range exposed {
		if err := WriteMetrics(w, Metric{e.name, e.kind, e.help, e.value(m)}); err != nil {
			return err
		}
	}
	m.mu.Lock()
	states, refused := m.states, maps.Clone(m.refused)
	m.mu.Unlock()
	fmt.Fprintf(w, "# HELP %sjvms JVMs of this host by what is done with them.\n# TYPE %[1]sjvms gauge\n", prefix)
	for i, n := range states {
		fmt.Fprintf(w, "%sjvms{state=%q} %d\n", prefix, stateNames[i], n)
	}
	fmt.Fprintf(w, "# HELP %srefused_total JVMs that could not be recorded, by cause.\n", prefix)
	fmt.Fprintf(w, "# TYPE %srefused_total counter\n", prefix)
	for _, cause := range slices.Sorted(maps.Keys(refused)) {
		fmt.Fprintf(w, "%srefused_total{cause=%q} %d\n", prefix, cause, refused[cause])
	}
	m.writeEvents(w)
	return nil
}

// writeEvents writes the metrics of events, if there are any.
func (m *Metrics) writeEvents(w io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.events) == 0 {
		return
	}
	for _, of := range []struct {
		name, help string
		value      func(*eventMetrics) int64
	}{
		{"event_samples_total", "Samples of events in batches.", func(e *eventMetrics) int64 { return e.samples }},
		{"event_refused_total", "Times that a JVM was recorded without an event.",
			func(e *eventMetrics) int64 { return e.refused }},
		{"event_dropped_total", "Times that an event of a JVM was dropped, as its hits alone cost too much.",
			func(e *eventMetrics) int64 { return e.dropped }},
		{"event_retried_total", "Times that an event which was dropped was tried again.",
			func(e *eventMetrics) int64 { return e.retried }},
	} {
		fmt.Fprintf(w, "# HELP %s%s %s\n# TYPE %[1]s%[2]s counter\n", prefix, of.name, of.help)
		for _, name := range slices.Sorted(maps.Keys(m.events)) {
			fmt.Fprintf(w, "%s%s{event=%q} %d\n", prefix, of.name, name, of.value(m.events[name]))
		}
	}
}
