package profile

import (
	"cmp"
	"fmt"
	"sort"
	"time"
)

// ThreadDump is one look at one thread.
type ThreadDump struct {
	TID   int
	Name  string
	State string // as Java reports it, otherwise as the kernel does
	Stack Stack
	// Virtual is set for a virtual thread without a carrier. Then TID is 0. For a thread of the kernel it is nil.
	Virtual *VirtualThread
	// FrameSum is a hash of the bytes of Virtual's frames, for comparison within this process. The frames of a wait for
	// another thread refer to an object that is made for this wait (a node of a queue), so the same hash means that the
	// wait has not ended. A collector that moves the object also changes the hash. 0: not known.
	FrameSum uint64
	// Java: the thread runs Java code, the application's or the JDK's. Other threads are the JVM's own: collectors,
	// compilers.
	Java   bool
	Daemon bool
	// System: the Java code is the JDK's own: Reference Handler, Signal Dispatcher, Common-Cleaner.
	System bool
	CPU    time.Duration // that it has used since it began
	// CPUAfter is the thread's CPU time some time after the look. It includes the microseconds that the stop cost the
	// thread. 0: not read.
	CPUAfter time.Duration
	// Further facts from the JVM and the kernel. Zero is not known.
	JavaID   int64         // Thread.threadId()
	Priority int           // of Java, 1 to 10
	Nice     int           // of the kernel
	Age      time.Duration // since it was started
	Address  uint64        // of the JVM's own record of a thread that can run Java (JavaThread)
	// Holds and WaitsFor are set if locks were asked for.
	Holds    []HeldLock
	WaitsFor *WantedLock // nil: the thread waits for no lock, or that is not known
	// Unconfirmed: the thread seemed to wait for another thread's lock, but that could not be confirmed. Then WaitsFor is
	// nil.
	Unconfirmed bool
	// Peer is the other end of the connection that the thread waits for in a system call. It is empty if there is none, or
	// if it is not known.
	Peer string
	// Died: this thread got the signal that ended the process.
	Died bool
	// Err is why there is no stack at all. Otherwise it is empty.
	Err string
}

// Dump is one look at all threads of a JVM, with the facts about that JVM.
type Dump struct {
	At        time.Time
	PID       int
	MainClass string        // or jar, without arguments
	VM        string        // "OpenJDK 64-Bit Server VM"
	Version   string        // "17.0.15+6"
	Uptime    time.Duration // 0: not known
	// Stopped: a signal had stopped the process (SIGSTOP, Ctrl-Z). So no thread runs, whatever Java reports as its state.
	Stopped bool
	// Frozen names the control group that had frozen the process (docker pause), and Thaw is the command that lets it run
	// again. Both are empty if the process was not frozen. Unstopped: its threads could not be stopped.
	Frozen, Thaw string
	Unstopped    bool
	Threads      []ThreadDump
	Virtual      *VirtualCensus // nil: virtual threads without a carrier were not asked for
	// Pools are the pools of threads and of connections. nil: they were not asked for.
	Pools *Pools
	// Deadlocks are cycles of threads. Each thread waits for something that the next one holds, and the last for the
	// first.
	Deadlocks [][]ThreadRef
	// Core is set if the dump was taken of a core file.
	Core *Core
	// Waits is how many waits of virtual threads without a carrier were read, if they were asked for.
	Waits VirtualWaits
	// NoLocks is why locks could not be read, if they were asked for.
	NoLocks string
}

// StoppedNote returns a sentence for a process that is stopped or frozen, with the command that lets it run again. It
// is empty for other processes.
func (d *Dump) StoppedNote() string {
	switch {
	case d.Frozen != "" && d.Unstopped:
		return fmt.Sprintf("%s, so that no thread could be stopped for its stack (%s lets it go on)", d.Frozen, d.Thaw)
	case d.Frozen != "":
		return fmt.Sprintf("%s (%s lets it go on)", d.Frozen, d.Thaw)
	case !d.Stopped:
		return ""
	}
	return fmt.Sprintf("stopped by a signal (kill -CONT %d lets it go on)", d.PID)
}

// Java returns how many threads run Java code, and how many are the JVM's own.
func (d *Dump) Java() (java, own int) {
	for i := range d.Threads {
		switch t := &d.Threads[i]; {
		case t.TID == 0:
		case t.Java:
			java++
		default:
			own++
		}
	}
	return java, own
}

// States counts the threads that run Java code, by state.
func (d *Dump) States() map[string]int {
	states := map[string]int{}
	for i := range d.Threads {
		if t := &d.Threads[i]; t.TID != 0 && t.Java {
			states[t.State]++
		}
	}
	return states
}

// Unconfirmed counts the threads that seem to wait for another thread's lock, without confirmation.
func Unconfirmed(threads []ThreadDump) (n int) {
	for i := range threads {
		if threads[i].Unconfirmed {
			n++
		}
	}
	return n
}

// VirtualCensus is how many virtual threads without a carrier a dump has found.
type VirtualCensus struct {
	Seen  int `json:"seen"`  // in the JVM's thread containers, including mounted ones
	Shown int `json:"shown"` // with their stacks
	// Unread counts, by reason, threads without a whole stack, and places that may hold further threads.
	Unread map[string]int `json:"unread"`
	// Untracked: the JVM does not list virtual threads that were started without an executor.
	Untracked bool `json:"untracked,omitempty"`
}

// VirtualWaits is how many waits of virtual threads without a carrier were read.
type VirtualWaits struct {
	Seen int   // virtual threads that were found
	Left int   // further waiting threads that were left out, because there were too many
	Err  error // why further ones may not have been found
}

// Unread returns why a deadlock of virtual threads may not be shown. It is empty if all waits were read.
func (v *VirtualWaits) Unread() string {
	switch {
	case v.Err != nil:
		return fmt.Sprintf("%d virtual threads were found, but not all: %v", v.Seen, v.Err)
	case v.Left > 0:
		return fmt.Sprintf("%d more virtual threads wait for something: too many to read", v.Left)
	}
	return ""
}

// DumpPart is the part of a dump that a thread belongs to.
type DumpPart uint8

// The parts of a dump, in their order.
const (
	MainThread  DumpPart = iota
	Application          // the application's other threads
	JDK                  // the JDK's own
	Unmounted            // virtual threads without a carrier
	JVM                  // the JVM's own
	Died                 // the thread that died, in a dump of a core: it comes before all others
)

// Part returns the thread's part of the dump.
func (t *ThreadDump) Part() DumpPart {
	switch {
	case t.TID == 0:
		return Unmounted
	case !t.Java:
		return JVM
	case t.System:
		return JDK
	case t.Name == "main":
		return MainThread
	}
	return Application
}

// Order sorts the threads by part, and within a part by the time at which they began. So the threads of a pool are
// together, and two dumps can be compared line by line.
func Order(threads []ThreadDump) {
	sort.SliceStable(threads, func(i, j int) bool {
		a, b := &threads[i], &threads[j]
		return cmp.Or(cmp.Compare(a.Part(), b.Part()), cmp.Compare(a.born(), b.born())) < 0
	})
}

// OrderVirtual sorts virtual threads in the order in which they were created.
func OrderVirtual(threads []ThreadDump) {
	sort.Slice(threads, func(i, j int) bool { return threads[i].Virtual.ID < threads[j].Virtual.ID })
}

// born returns the sort key, the thread's number: the kernel numbers threads in the order of their creation, until the
// numbers wrap around.
func (t *ThreadDump) born() uint64 {
	if t.TID == 0 && t.Virtual != nil {
		return t.Virtual.ID
	}
	return uint64(t.TID)
}

// Thread returns a thread of the dump. It is nil if the thread is not in the dump.
func (d *Dump) Thread(ref ThreadRef) *ThreadDump {
	for i := range d.Threads {
		t := &d.Threads[i]
		if ref.TID != 0 && t.TID == ref.TID ||
			ref.Virtual != 0 && ref.TID == 0 && t.Virtual != nil && t.Virtual.ID == ref.Virtual {
			return t
		}
	}
	return nil
}

// Ref returns the name of the thread, or of the virtual thread that it ran.
func (t *ThreadDump) Ref() ThreadRef {
	ref := ThreadRef{TID: t.TID, Name: t.Name}
	v := t.Stack.Virtual
	if t.Virtual != nil {
		v = *t.Virtual
	}
	if v.ID != 0 {
		ref.Virtual, ref.Name = v.ID, v.Name
	}
	return ref
}
