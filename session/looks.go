//go:build linux

package session

import (
	"context"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/vmstructs"
)

// Record and Dump consist of looks at single threads. A caller that needs something else makes the looks itself:
// Threads and Thread return what must be known before a thread is stopped, a Sampling hands over the samples of a
// recording one by one, and Session.Walker makes stacks of them. The oracles of testdata/oracle do that, and compare
// each stack with what the program itself knows.

// Thread is what is known of one thread of the process.
type Thread struct {
	Kernel process.Thread
	Java   vmstructs.Thread // Addr is 0 if it is not one of Java
	Name   string           // as Java knows it, otherwise the kernel's
	Hint   ptrace.Hint      // what must be known before a stop
}

// Threads lists all threads by their numbers. It reads everything again.
func (s *Session) Threads() (map[int]Thread, error) {
	d := newDirectory(s.Process, s.VM)
	err := d.refresh()
	threads := make(map[int]Thread, len(d.threads))
	for tid, th := range d.threads {
		threads[tid] = s.toThread(th)
	}
	return threads, err
}

// Thread returns a thread by its number, at most a second old. It returns false if there is no such thread.
func (s *Session) Thread(tid int) (Thread, bool) {
	th := s.dir.get(tid)
	if th == nil {
		return Thread{}, false
	}
	return s.toThread(th), true
}

func (s *Session) toThread(th *listedThread) Thread {
	return Thread{Kernel: th.kernel, Java: th.java, Name: th.name, Hint: th.hint(s.VM)}
}

// Sampling takes samples as Record does, and hands them to the caller.
type Sampling struct {
	Queue int // how many snapshots may wait for the caller
	r     *recording
}

// Sampling prepares samples of the CPU time of all threads.
func (s *Session) Sampling(e EngineName) *Sampling {
	return &Sampling{Queue: queueLength, r: s.recording(RecordOptions{Engine: e})}
}

// ReadSoon sets what the engine reads as soon as a thread runs again, and the trail for its pause. With both in Run's
// configuration, the stacks of virtual threads have the frames that are in the heap.
func (p *Sampling) ReadSoon(config *sampler.Config) { p.r.readSoon(config) }

// Run samples until ctx is done or the process ends. Each snapshot belongs to each until each returns.
func (p *Sampling) Run(ctx context.Context, config sampler.Config,
	each func(*look.Look)) (sampler.Stats, error) {
	var stats sampler.Stats
	p.r.refreshHints(0)
	queue := sampler.NewQueue(p.Queue)
	done := make(chan error, 1)
	go func() {
		var err error
		stats, err = p.r.sampler.Run(ctx, config, queue)
		done <- err
	}()
	for snap := range queue.Looks() {
		p.r.follow(snap)
		each(snap)
		queue.Done(snap)
	}
	return stats, <-done
}

// Walk makes a snapshot's stack. If the stack shows that the thread runs virtual threads, it informs the engine.
func (p *Sampling) Walk(snap *look.Look, stack *profile.Stack) {
	p.r.walk(snap, stack)
	p.r.wantSoon(snap.TID, stack)
}

// Proven reports whether the walk that was just made shows where the thread was when the snapshot was taken. Record
// loses other snapshots as stale.
func (p *Sampling) Proven(snap *look.Look) bool {
	return p.r.proven(snap, snap.When, p.r.Walker.Since())
}

// EventSampling prepares samples of an event in all threads.
func (s *Session) EventSampling(plan *EventPlan) *Sampling {
	return &Sampling{Queue: eventQueue, r: s.recording(RecordOptions{Engine: PerfEngine, Event: plan})}
}
