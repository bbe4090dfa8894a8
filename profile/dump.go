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
	State string // as Java says it, otherwise the kernel's
	Stack Stack
	// Virtual is set if the look was at a virtual thread that no carrier ran. TID is 0 then. It is nil for a thread of the
	// kernel.
	Virtual *VirtualThread
	// FrameSum is a hash of the bytes of Virtual's frames, for comparison within this process. A wait for another thread
	// has an object of its own among them (a node of a queue), so the same hash means that the wait has not ended. A
	// collector that moves such an object changes the hash, too. 0: not known.
	FrameSum uint64
	// Java says that the thread runs Java code, the application's or the JDK's. Other threads are the JVM's own:
	// collectors, compilers.
	Java   bool
	Daemon bool
	// System says that the Java code is the JDK's own: Reference Handler, Signal Dispatcher, Common-Cleaner.
	System bool
	CPU    time.Duration // that it has used since it began
	// CPUAfter is the CPU time that the thread had used a while after the look. It includes the microseconds that the stop
	// cost the thread. 0: not read.
	CPUAfter time.Duration
	// What the JVM and the kernel say besides. Zero is not known.
	JavaID   int64         // Thread.threadId()
	Priority int           // of Java, 1 to 10
	Nice     int           // of the kernel
	Age      time.Duration // since it was started
	Address  uint64        // of the JVM's own record of a thread that can run Java (JavaThread)
	// Holds and WaitsFor are set if locks were asked for.
	Holds    []HeldLock
	WaitsFor *WantedLock // nil: the thread waits for no lock, or that is not known
	// Unconfirmed says that the thread seemed to wait for another thread's lock, and that this could not be confirmed.
	// WaitsFor is nil then.
	Unconfirmed bool
	// Peer is the other end of the connection that the thread waits for in a system call. It is empty if there is none, or
	// if it is not known.
	Peer string
	// Died says that the signal that ended the process met this thread.
	Died bool
	// Err says why there is no stack at all; empty otherwise.
	Err string
}

// Dump is one look at all threads of a JVM, with what is known of that JVM.
type Dump struct {
	At        time.Time
	PID       int
	MainClass string        // or jar, without arguments
	VM        string        // "OpenJDK 64-Bit Server VM"
	Version   string        // "17.0.15+6"
	Uptime    time.Duration // 0: not known
	// Stopped says that a signal had stopped the process (SIGSTOP, Ctrl-Z). So no thread runs, whatever Java says of
	// its state.
	Stopped bool
	// Frozen names the control group that had frozen the process (docker pause), and Thaw is the command that lets it run.
	// Both are empty if none had. Unstopped says that its threads could not be stopped: looks were made without a stop.
	Frozen, Thaw string
	Unstopped    bool
	Threads      []ThreadDump
	Virtual      *VirtualCensus // nil: virtual threads that no carrier runs were not asked for
	// Pools is what is known of pools of threads and of connections. Nil: that was not asked for.
	Pools *Pools
	// Deadlocks are cycles of threads. Each thread waits for something that the next one holds, and the last for the first.
	Deadlocks [][]ThreadRef
	// Core is set if the dump was taken of a core file.
	Core *Core
	// Waits says how many waits of virtual threads without a carrier were read, if they were asked for.
	Waits VirtualWaits
	// NoLocks says why locks could not be read, where they were asked for.
	NoLocks string
}

// StoppedNote returns a sentence for a process that is stopped or frozen, with the command that lets it run again. It is
// empty for other processes.
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

// Java counts the threads that run Java code, and the JVM's own.
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

// States counts the threads that run Java code by their states.
func (d *Dump) States() map[string]int {
	states := map[string]int{}
	for i := range d.Threads {
		if t := &d.Threads[i]; t.TID != 0 && t.Java {
			states[t.State]++
		}
	}
	return states
}

// Unconfirmed counts the threads that seem to wait for another thread's lock, where that could not be confirmed.
func Unconfirmed(threads []ThreadDump) (n int) {
	for i := range threads {
		if threads[i].Unconfirmed {
			n++
		}
	}
	return n
}

// VirtualCensus says how many virtual threads a dump has found that no carrier ran.
type VirtualCensus struct {
	Seen  int `json:"seen"`  // in the JVM's thread containers, mounted ones too
	Shown int `json:"shown"` // with their stacks
	// threads with no stack or a part of one, and places that may hold further threads: by reason
	Unread map[string]int `json:"unread"`
	// Untracked says that the JVM keeps no list of virtual threads that were started without an executor.
	Untracked bool `json:"untracked,omitempty"`
}

// VirtualWaits says how many waits of virtual threads without a carrier were read.
type VirtualWaits struct {
	Seen int   // virtual threads that were found
	Left int   // further waiting threads that were left out, because there were too many
	Err  error // why others may not have been found
}

// Unread says why a deadlock of virtual threads may not be shown. It is empty if all waits were read.
func (v *VirtualWaits) Unread() string {
	switch {
	case v.Err != nil:
		return fmt.Sprintf("%d virtual threads were found, but not all: %v", v.Seen, v.Err)
	case v.Left > 0:
		return fmt.Sprintf("%d more virtual threads wait for something: too many to read", v.Left)
	}
	return ""
}

// DumpPart is which part of a dump a thread belongs to.
type DumpPart uint8

// The parts of a dump, in their order.
const (
	MainThread  DumpPart = iota
	Application          // the application's other threads
	JDK                  // the JDK's own
	Unmounted            // virtual threads that no carrier ran
	JVM                  // the JVM's own
	Died                 // the thread that died, in a dump of a core: it stands before all others
)

// Part returns the part that the thread belongs to.
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

// Order sorts the threads by their parts, and within a part by the time at which they began. So the threads of a pool
// are together, and two dumps can be compared line by line.
func Order(threads []ThreadDump) {
	sort.SliceStable(threads, func(i, j int) bool {
		a, b := &threads[i], &threads[j]
		return cmp.Or(cmp.Compare(a.Part(), b.Part()), cmp.Compare(a.born(), b.born())) < 0
	})
}

// OrderVirtual puts virtual threads in the order of their birth.
func OrderVirtual(threads []ThreadDump) {
	sort.Slice(threads, func(i, j int) bool { return threads[i].Virtual.ID < threads[j].Virtual.ID })
}

// born orders threads by their numbers: the kernel gives them in the order of birth, until they wrap around.
func (t *ThreadDump) born() uint64 {
	if t.TID == 0 && t.Virtual != nil {
		return t.Virtual.ID
	}
	return uint64(t.TID)
}

// Thread returns a thread of the dump, and nil if the dump does not have it.
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

// Ref names the thread, or the virtual thread that it ran.
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
