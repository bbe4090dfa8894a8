//go:build linux

package wall

import (
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/threads"
)

type watched struct {
	tid   int
	hint  ptrace.Hint
	fd    int32
	round uint32 // the last listing that had the thread
	// zombie: the thread is the leader and has ended, while other threads live on.
	zombie bool

	// The thread's last look with a snapshot.
	tally *look.Tally
	last  procfs.Schedstat // the thread's charge at that look
	still bool             // the thread was at rest: the look is valid until the thread moves
	again int64            // when to look again even if it is at rest; 0: only when it has moved

	lookedAt int64 // when it was last visited

	// See quiet.go.
	read    procfs.Schedstat // the thread's charge at its last reading
	readAs  uint64           // the number of that reading
	hot     bool
	movedAt int64

	// The unfinished look, which may wait for a stop.
	pending  bool
	later    bool  // how long the look counts is known later (gather.go)
	owed     int64 // how often the look counts: once more for each visit while it waits for its stop
	owedTime time.Duration
	waited   time.Duration    // the part of owedTime in which it waited for its stop
	before   procfs.Schedstat // the thread's charge when the look began
	beganAt  int64
	atRest   bool         // the look stopped it for NativeOnce
	resting  look.Waiting // what the thread waited for at that stop

	rests    [maxRests]rest
	nextRest int
}

// maxRests bounds the remembered places at which a thread was stopped for its native frames.
const maxRests = 8

// rest is a place where a thread came to rest, and what the thread waited for there.
type rest struct {
	pc, sp uint64
	call   arch.Call
	file   look.FileKind
}

// setHint sets the thread's hint. Looks with another hint do not count again.
func (th *watched) setHint(h ptrace.Hint) {
	if th.hint != h {
		th.hint, th.still = h, false
	}
}

// restAt returns the rest at a place. nil: the thread was not stopped there for its native frames.
func (th *watched) restAt(pc, sp uint64) *rest {
	for i := range th.rests {
		if r := &th.rests[i]; r.pc == pc && r.sp == sp && pc != 0 {
			return r
		}
	}
	return nil
}

func (th *watched) addRest(r rest) {
	th.rests[th.nextRest%maxRests] = r
	th.nextRest++
}

func (th *watched) forgetRest() {
	th.nextRest--
	th.rests[th.nextRest%maxRests] = rest{}
}

type watchList struct {
	proc    *procfs.Dir
	byTID   map[int]*watched
	order   []*watched // ended threads have the number 0 until the next listing
	whole   bool       // the last listing was complete: a thread that it lacks has ended
	round   uint32
	at      int64 // when the last listing was
	cost    int64
	counted int // threads in the last listing
	seen    func(tid int)
	kept    threads.KeptFiles
	giveUp  func()
	noStats bool // no schedstat in this kernel: counts of switches instead
	quiet   quiet
	ts      unix.Timespec
}

const (
	// relistEvery is how old the list may be if its number of threads is right. Otherwise goprof lists again at the
	// next tick, with at most 1/relistShare of a CPU.
	relistEvery = int64(time.Second)
	relistShare = 30
)

func (l *watchList) open(proc *procfs.Dir, fds int) {
	l.proc, l.kept = proc, threads.KeepFiles(fds)
	l.byTID = make(map[int]*watched)
	l.seen, l.giveUp = l.noteListed, l.giveUpFiles
	l.quiet = quiet{clock: threads.ProcessClock(proc.PID), left: unknown, other: unknown, ticks: allCPUsTick()}
	own, ok := procfs.ParseSchedstat(proc.Read(proc.PID, "schedstat"))
	l.noStats = !ok || own.Turns == 0
}

func (l *watchList) close() {
	for _, th := range l.byTID {
		l.kept.Close(&th.fd)
	}
}

// list looks for new threads if the time for a listing has come.
func (l *watchList) list() {
	now := ptrace.Monotonic()
	l.quiet.now, l.quiet.skips = false, false
	l.quiet.dropIdle()
	count := l.proc.Count()
	changed := count != l.counted
	age := now - l.at
	l.whole = false
	if l.round > 0 && (age < l.cost*relistShare || !changed && age < relistEvery) {
		return
	}
	l.counted = 0
	l.round++
	if l.proc.Threads(l.seen) != nil {
		return
	}
	for _, th := range l.byTID {
		if th.round == l.round {
			continue
		}
		if _, ok := l.readCharged(th); !ok { // a listing may leave out living threads: see threads.List
			l.forget(th)
		}
	}
	keep := l.order[:0]
	for _, th := range l.order {
		if th.tid != 0 {
			keep = append(keep, th)
		}
	}
	clear(l.order[len(keep):])
	l.order = keep
	l.whole = true
	l.at = now
	l.cost = ptrace.Monotonic() - now
}

func (l *watchList) noteListed(tid int) {
	l.counted++
	if th := l.byTID[tid]; th != nil {
		th.round = l.round
		return
	}
	th := &watched{tid: tid, fd: -1, round: l.round, lookedAt: ptrace.Monotonic()}
	l.byTID[tid] = th
	l.order = append(l.order, th)
}

// forget drops a thread that has ended. A pending stop of the thread is still collected.
func (l *watchList) forget(th *watched) {
	if th.tid == 0 {
		return
	}
	l.kept.Close(&th.fd)
	l.quiet.removeEnded(th)
	delete(l.byTID, th.tid)
	th.tid = 0
}

// readCharged returns what the kernel has charged a thread, false if the thread has ended. It keeps the descriptor if
// there are enough.
func (l *watchList) readCharged(th *watched) (procfs.Schedstat, bool) {
	name := "schedstat"
	if l.noStats {
		name = "status"
	}
	b := l.kept.Read(l.proc, th.tid, name, &th.fd, true, l.giveUp)
	if l.noStats {
		return procfs.Schedstat{Turns: procfs.StatusSwitches(b)}, len(b) > 0
	}
	stat, ok := procfs.ParseSchedstat(b)
	if ok {
		l.note(th, stat)
	}
	return stat, ok
}

// giveUpFiles closes some kept descriptors.
func (l *watchList) giveUpFiles() {
	for _, th := range l.order[:min(len(l.order), threads.ReservedFDs)] {
		l.kept.Close(&th.fd)
	}
}
