//go:build linux

package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"goprof/process"
	"goprof/sampler/ptrace"
	"goprof/vmstructs"
)

// directory lists the threads of the process, with the kernel's and the JVM's facts about them.
type directory struct {
	p       *process.Process
	vm      *vmstructs.VM
	threads map[int]*listedThread
	// ended are threads that have left the list lately. Some of their samples may not be walked yet.
	ended  map[int]endedThread
	round  int
	at     time.Time     // of the last refresh
	mapped time.Time     // when the mappings were read
	cost   time.Duration // of the last refresh
	every  time.Duration // greatest age of the list of threads and of names
	// allNames: the names of all threads are kept fresh. Otherwise only the names that are asked for.
	allNames bool
	// watch is called for each thread that comes or goes, if it is not nil.
	watch func(th *listedThread, ended bool)
}

type listedThread struct {
	kernel process.Thread
	java   vmstructs.Thread // Addr 0: not a JavaThread
	name   string           // as Java knows it, otherwise the kernel's
	label  string           // "[name tid=N]"
	// javaNamed: the name is Java's.
	javaNamed bool
	javaID    int64 // Thread.threadId(), 0 if it is not known. It is read where watch is set
	round     int
	named     time.Time // when its name was read
	handle    handle
	begun     begun

	// The label before this one, and the two times between which the name changed (CLOCK_MONOTONIC).
	oldLabel         string
	oldName          string
	oldRead, newRead int64
	read             int64 // when its name was read (CLOCK_MONOTONIC)
}

// handle is a JavaThread's handle to the virtual thread that it runs.
type handle struct{ thread, at uint64 }

const (
	// refreshEvery is directory.every, unless the recording's habits differ. refreshUnknown bounds how often an unknown
	// thread may cause the list to be read. refreshShare bounds the share of the time that reading may take.
	refreshEvery   = time.Second
	refreshUnknown = 20 * time.Millisecond
	refreshShare   = 20
	// refreshMaps is how often goprof reads the mappings again even if every pc was in a known one: a library may have
	// been replaced. It is long because the process cannot map memory while goprof reads its mappings.
	refreshMaps = 10 * time.Second
)

func newDirectory(p *process.Process, vm *vmstructs.VM) *directory {
	return &directory{p: p, vm: vm, every: refreshEvery, threads: make(map[int]*listedThread)}
}

// get returns a thread. It is nil if the thread is not known: the thread may be new, or gone.
func (d *directory) get(tid int) *listedThread {
	age := time.Since(d.at)
	th := d.threads[tid]
	due := age > d.every || th == nil && age > refreshUnknown
	if due && age > d.cost*refreshShare {
		d.update(d.allNames)
		th = d.threads[tid]
	}
	if th != nil && time.Since(th.named) > d.every {
		d.name(th)
	}
	return th
}

// name reads a thread's names. It returns false for a thread that has ended.
func (d *directory) name(th *listedThread) bool {
	k, err := d.p.Thread(th.kernel.TID)
	if err != nil {
		return false
	}
	th.kernel = k
	d.rename(th)
	return true
}

func (d *directory) refresh() error { return d.update(true) }

// update reads the kernel's and the JVM's list of threads. If a list cannot be read, the old one stays. With all, it
// also reads all names. Otherwise it only reads a name if a new thread reuses the number of a thread with a name.
// Reading all names costs much more: usually few of ten thousand threads are sampled, and get reads their names then.
func (d *directory) update(all bool) error {
	began := time.Now()
	defer func() { d.at, d.cost = time.Now(), time.Since(began) }()
	if began.Sub(d.mapped) > refreshMaps {
		if !d.mapped.IsZero() && d.p.Refresh() != nil {
			return process.ErrGone
		}
		d.mapped = began
	}
	tids, err := d.p.ThreadIDs()
	if err != nil {
		return err
	}
	java, javaErr := d.vm.Threads()
	byNS := make(map[int]vmstructs.Thread, len(java))
	for _, j := range java {
		byNS[j.NSTID] = j
	}
	d.round++
	for _, tid := range tids {
		th := d.threads[tid]
		born := th == nil
		if born {
			ns, err := d.p.NSTID(tid)
			if err != nil {
				continue
			}
			th = &listedThread{kernel: process.Thread{TID: tid, NSTID: ns}}
		}
		named := all
		if j, isJava := byNS[th.kernel.NSTID]; isJava || javaErr == nil {
			if j.Addr != th.java.Addr && j.Addr != 0 { // a thread that leaves the JVM is about to end, and keeps its name
				th.name, th.javaNamed, th.javaID = "", false, 0
				named = named || !th.named.IsZero()
			}
			th.java = j
		}
		if named && !d.name(th) {
			continue
		}
		th.round = d.round
		d.threads[tid] = th
		if born && d.watch != nil {
			d.watch(th, false)
		}
	}
	for tid, th := range d.threads {
		if th.round != d.round {
			delete(d.threads, tid)
			d.remember(tid, th)
			if d.watch != nil {
				d.watch(th, true)
			}
		}
	}
	return javaErr
}

// rename reads the thread's name again, because programs rename pooled threads for each task. If the name cannot be
// read now, because a collector moves it, the old one stays. If there is no old name, the kernel's short name is used
// until a later reading succeeds.
func (d *directory) rename(th *listedThread) {
	name, wasJava := th.name, th.javaNamed
	th.named = time.Now()
	if th.java.Addr != 0 {
		if n, err := d.javaName(th); err == nil && n != "" {
			name, th.javaNamed = n, true
		}
		if d.watch != nil && th.javaID == 0 {
			th.javaID, _ = d.vm.ThreadID(th.java) // 0 if a collector moves the object
		}
	}
	if name == "" || th.java.Addr == 0 && !th.javaNamed {
		name = th.kernel.Comm
	}
	read := now()
	if name != th.name {
		th.oldLabel = ""
		if th.name != "" && (wasJava || th.java.Addr == 0) { // otherwise the old name is only the kernel's
			th.oldLabel, th.oldRead, th.newRead = th.makeLabel(), th.read, read
			th.oldName = th.name
		}
		th.name, th.label = name, ""
	}
	th.read = read
}

// makeLabel makes the label, once for each name.
func (th *listedThread) makeLabel() string {
	if th.label == "" {
		th.label = fmt.Sprintf("[%s tid=%d]", th.name, th.kernel.TID)
	}
	return th.label
}

// nameTries bounds the attempts to read a name while a collector moves it.
const nameTries = 3

func (d *directory) javaName(th *listedThread) (name string, err error) {
	for range nameTries {
		if name, err = d.vm.ThreadName(th.java); !errors.Is(err, vmstructs.ErrMoved) {
			return name, err
		}
	}
	if name != "" && (name == th.name || d.confirms(th, name)) {
		return name, nil
	}
	return "", err
}

// confirms reports whether the kernel's name of a thread agrees with the name that was read during a collection. It
// also returns true if the kernel's name proves nothing: HotSpot does not set it for the launcher's threads and for
// threads that programs attach, so they have the name of the process.
func (d *directory) confirms(th *listedThread, name string) bool {
	comm := th.kernel.Comm
	if leader := d.threads[d.p.PID()]; comm == "" || leader != nil && comm == leader.kernel.Comm {
		return true
	}
	return vmstructs.FitsComm(name, comm)
}

// endedThread is the label that a thread had, and the time when it left the list.
type endedThread struct {
	label string
	when  time.Time
}

// remember notes the label of a thread that leaves the list.
func (d *directory) remember(tid int, th *listedThread) {
	if th.label == "" && th.oldLabel == "" {
		return // no sample was counted under its name
	}
	if len(d.ended) >= maxPools || d.ended == nil {
		d.ended = map[int]endedThread{}
	}
	d.ended[tid] = endedThread{th.makeLabel(), time.Now()}
}

// label returns the frame above a thread's stacks.
func (d *directory) label(tid int) string {
	th := d.threads[tid]
	if th == nil {
		if e, ok := d.ended[tid]; ok && time.Since(e.when) < lateFor {
			return e.label
		}
		return fmt.Sprintf("[? tid=%d]", tid)
	}
	if th.named.IsZero() {
		d.name(th)
	}
	return th.makeLabel()
}

// labelAt returns the thread's label at a given time. Of the last two labels, it is the one that was read nearer to
// that time.
func (d *directory) labelAt(tid int, when int64) string {
	label := d.label(tid)
	if th := d.threads[tid]; th != nil && th.wasCalled(when) {
		return th.oldLabel
	}
	return label
}

// wasCalled reports whether the thread still had its old name at a given time.
func (th *listedThread) wasCalled(when int64) bool {
	return th.oldLabel != "" && when-th.oldRead < th.newRead-when
}

// byNSTID maps the threads' numbers in the JVM's pid namespace to those in goprof's.
func (d *directory) byNSTID() map[int]int {
	tids := make(map[int]int, len(d.threads))
	for tid, th := range d.threads {
		tids[th.kernel.NSTID] = tid
	}
	return tids
}

// tids lists the threads by number.
func (d *directory) tids() []int { return slices.Sorted(maps.Keys(d.threads)) }

// hint returns what a sampler must know before it stops the thread: where its stack ends, and which part of its
// JavaThread to copy in the pause.
func (th *listedThread) hint(vm *vmstructs.VM) ptrace.Hint {
	if th.java.Addr == 0 {
		return ptrace.Hint{}
	}
	off, size := vm.Side()
	low := uint64(0)
	if size := th.java.StackSize; size > 0 {
		low = th.java.StackBase - size
	}
	at, follow := vm.Follow()
	if th.handle.thread != th.java.Addr {
		th.handle = handle{th.java.Addr, vm.VirtualHandle(th.java.Addr)}
	}
	return ptrace.Hint{StackTop: th.java.StackBase, StackLow: low, Side: th.java.Addr + off, SideLen: size,
		FollowAt: at, FollowLen: follow,
		Handle: th.handle.at}
}

// isVMJavaThread reports whether a Java thread has a name that the JVM gives to its own threads.
func (d *directory) isVMJavaThread(tid int) bool {
	th := d.threads[tid]
	if th == nil || th.java.Addr == 0 {
		return false
	}
	if th.named.IsZero() {
		d.name(th)
	}
	return th.javaNamed && vmstructs.IsVMJavaThread(th.name)
}
