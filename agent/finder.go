//go:build linux

package agent

import (
	"time"

	"goprof/diagnose"
)

// finder notices JVMs as they start and end. Most processes of a host never become JVMs. So finder looks at a process
// soon after its start, and then at growing intervals: a shell becomes java by exec, and a program may load a JVM at
// any time.
type finder struct {
	world World
	known map[int]*seenProcess
	round uint32
}

type seenProcess struct {
	started time.Duration
	comm    string
	stopped bool
	jvm     bool
	round   uint32
	next    time.Time     // look again
	wait    time.Duration // until then
	space   uint64        // its smallest address space since Glance found no JVM; 0: it was not asked
}

const (
	// firstLook is how soon finder looks at a new process again. seldomLook is how often it looks at one that was no
	// JVM for long.
	firstLook  = time.Second
	seldomLook = time.Minute
	// jvmLook is how often finder looks at a JVM: its number may be another process's by now, it may have become
	// another program, or it may be stopped. The list of processes tells at each beat whether it has ended.
	jvmLook = 5 * time.Second
	// leastJVM is by how much the address space of a program grows, at least, that loads a JVM: libjvm.so alone is larger.
	leastJVM = 16 << 20
	// mostProcesses bounds how many processes are kept.
	mostProcesses = 1 << 16
)

type found struct {
	born []diagnose.JVM
	gone []int
}

// beat compares what runs with what ran.
func (f *finder) beat(now time.Time) (news found) {
	pids := f.world.PIDs()
	if pids == nil {
		return news // the list could not be read: that does not say that a process has ended
	}
	f.round++
	for _, pid := range pids {
		p := f.known[pid]
		if p != nil && now.Before(p.next) {
			p.round = f.round
			continue
		}
		brief, ok := f.world.Brief(pid)
		if !ok {
			f.ignore(pid, p, now)
			continue
		}
		if p != nil && (p.started != brief.Started || p.jvm && p.comm != brief.Comm) {
			news.lose(pid, p) // the number is another process's, or it has become another program
			p = nil
		}
		if p == nil {
			if len(f.known) >= mostProcesses {
				continue
			}
			p = &seenProcess{started: brief.Started, wait: firstLook / 2}
			f.known[pid] = p
		}
		p.round, p.stopped = f.round, brief.State == 'T' || brief.State == 't'
		f.look(pid, p, brief, now, &news)
	}
	for pid, p := range f.known {
		if p.round != f.round {
			news.lose(pid, p)
			delete(f.known, pid)
		}
	}
	return news
}

// isStopped reports whether a process was stopped at the last look.
func (f *finder) isStopped(pid int) bool {
	p := f.known[pid]
	return p != nil && p.stopped
}

func (n *found) lose(pid int, p *seenProcess) {
	if p.jvm {
		n.gone = append(n.gone, pid)
	}
}

// ignore notes a process of which nothing can be read: it is a thread of the kernel, or has just ended. The next beat's
// list says which.
func (f *finder) ignore(pid int, p *seenProcess, now time.Time) {
	if p == nil && len(f.known) < mostProcesses {
		f.known[pid] = &seenProcess{round: f.round, next: now.Add(seldomLook)}
	}
}

// look looks at a process, and says when the next time is.
func (f *finder) look(pid int, p *seenProcess, brief diagnose.Brief, now time.Time, news *found) {
	if p.jvm {
		p.next = now.Add(jvmLook)
		return
	}
	if brief.Comm != p.comm {
		p.comm, p.wait, p.space = brief.Comm, firstLook/2, 0 // by exec, or it has a new name
	}
	isJava := brief.Comm == "java"
	closely := isJava || p.wait >= seldomLook/2
	if (isJava || brief.Threads > 1) && (closely || brief.Space >= p.space+leastJVM) {
		if jvm, ok := f.world.Glance(pid, closely); ok {
			p.jvm, p.next = true, now.Add(jvmLook)
			news.born = append(news.born, jvm)
			return
		}
		p.space = brief.Space
	}
	p.space = min(p.space, brief.Space)
	p.wait = min(p.wait*2, seldomLook)
	p.next = now.Add(p.wait)
}
