//go:build linux

package agent

import (
	"time"

	"goprof/diagnose"
)

// finder notices JVMs as they start and end. Most processes of a host never become JVMs. But a shell may become java by
// exec, and a program may load a JVM at any time. So finder looks at a process soon after its start, and then at
// growing intervals.
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
	next    time.Time     // the time of the next look
	wait    time.Duration // the time between the last look and the next
	space   uint64        // its smallest address space since Glance found no JVM; 0 if it was not asked
}

const (
	// firstLook is the delay between the first two looks at a new process. seldomLook is the delay for a process that
	// has not become a JVM for long.
	firstLook  = time.Second
	seldomLook = time.Minute
	// jvmLook is the time between two looks at a JVM. Its number may now belong to another process, it may have become
	// another program, or it may be stopped. The list of processes shows at each beat whether it has ended.
	jvmLook = 5 * time.Second
	// leastJVM is the least growth of the address space of a program that loads a JVM. libjvm.so alone is larger.
	leastJVM = 16 << 20
	// mostProcesses limits the processes that are remembered.
	mostProcesses = 1 << 16
)

type found struct {
	born []diagnose.JVM
	gone []int
}

// beat compares the list of processes with the last one.
func (f *finder) beat(now time.Time) (news found) {
	pids := f.world.PIDs()
	if pids == nil {
		return news // an unreadable list does not mean that processes have ended
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

// ignore notes a process of which nothing can be read: a thread of the kernel, or a process that has just ended. The
// list of the next beat shows which of the two.
func (f *finder) ignore(pid int, p *seenProcess, now time.Time) {
	if p == nil && len(f.known) < mostProcesses {
		f.known[pid] = &seenProcess{round: f.round, next: now.Add(seldomLook)}
	}
}

// look looks at a process and sets the time of the next look.
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
		jvm, is := f.world.Glance(pid, closely)
		if is.Or(false) {
			p.jvm, p.next = true, now.Add(jvmLook)
			news.born = append(news.born, jvm)
			return
		}
		if is.IsKnown() {
			p.space = brief.Space
		} else {
			p.wait = min(p.wait, jvmLook)
		}
	}
	p.space = min(p.space, brief.Space)
	p.wait = min(p.wait*2, seldomLook)
	p.next = now.Add(p.wait)
}
