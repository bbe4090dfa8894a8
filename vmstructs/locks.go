package vmstructs

import (
	"goprof/process"
)

// Locks finds out which threads hold which locks, and which threads wait for locks, without stopping a thread. It reads
// in rounds. The caller compares two rounds, and believes what both say of threads that did not run in between.
//
// A Locks uses the VM that it was made from: both belong to one goroutine.
type Locks struct {
	vm      *VM
	klasses klassModel
	mask    uint64         // the bits of a reference that are no colour
	virtual *Continuations // made when it is needed
	legacy  bool           // a mark word with the lowest bits 00 points at a BasicLock on the owner's stack
	table   bool           // an object's mark word does not name its monitor (UseObjectMonitorTable)
	pages   zPages
	rests   bool // see CollectorRests
	lost    bool // a reference could not be followed: its object may have been moved
	moves   bool // Shenandoah: an object's mark word may say where it is now

	classes map[uint64]*lockClass // by Klass*
	sites   map[lockSite][]siteLock
	listed  []uint64 // the monitors that had an owner when the list was read
	all     bool     // the list has been read

	// The round under way.
	threads  []lockThread
	byAddr   map[uint64]int
	byID     map[uint64]int
	stacks   []int32 // indexes of threads, in the order of their stacks' addresses
	monitors map[uint64]*monitor
	objects  map[uint64]uint64 // object -> its monitor
	fast     map[uint64]int    // object -> the thread whose LockStack has it; made when it is needed
	ranges   []process.Range
	looked   bool           // inits has been read
	inits    []initialising // the classes that are being initialised

	awaited   map[uint64]uint64 // monitors, and the classes whose initialisation ends the wait for them
	unmounted unmounted
	tasks     *taskSearch // of the round under way; nil: no thread computes a CompletableFuture
	stack     []byte
	colours   zColours
	still     stillZ
}

// LockKind says in which way a lock is owned.
type LockKind uint8

const (
	MonitorLock   LockKind = iota + 1 // of an object
	ExclusiveLock                     // of java.util.concurrent, with one owner
	SharedLock                        // of java.util.concurrent, held by readers
	UnownableLock                     // an object that LockSupport.park was given, and that has no owner
	ClassLock                         // the right to initialise a class
	TaskResult                        // of a FutureTask or a CompletableFuture: the owner computes it
)

// LockWait says in which way a thread waits.
type LockWait uint8

const (
	WaitToEnter      LockWait = iota + 1 // for a monitor
	WaitToNotify                         // in Object.wait
	WaitToUnpark                         // parked
	WaitToInitialize                     // until another thread has initialised a class
)

// Lock is a lock that a thread holds or waits for.
type Lock struct {
	Kind LockKind
	// Class is that of the object, with slashes; empty if the collector is moving the object. In a ClassLock it is the
	// class that is being initialised, and Object is the object on which the threads that need the class wait.
	Class   string
	Object  uint64 // its address, 0 if that is not known now
	Monitor uint64 // the ObjectMonitor, 0 if the lock has none
}

// LockOwner is the thread that holds a lock. The zero value means no thread, or not known.
type LockOwner struct {
	Thread  uint64 // a JavaThread
	Virtual uint64 // the number of a virtual thread
	Name    string // the name of a virtual thread that no carrier runs
}

// Wanted is the lock that a thread waits for. How is 0 if the thread waits for no lock.
type Wanted struct {
	Lock
	How   LockWait
	Timed bool // the wait has a time limit
	Owner LockOwner
}

// Held is a lock that a thread holds.
type Held struct {
	Lock
	Frame int // the frame that took the lock, of those that Round was given; -1: not known
}

// ThreadLocks is what one round says of one thread.
type ThreadLocks struct {
	Thread  Thread
	Virtual uint64 // the number of the virtual thread that this thread runs
	Wants   Wanted
	Holds   []Held
}

const (
	maxMonitors     = 1 << 16 // that are read of the list; each takes a microsecond
	maxLockClasses  = 1 << 12
	maxLockStack    = 64 // entries; HotSpot's has 8 (runtime/lockStack.hpp, CAPACITY)
	maxHeldByThread = 256
)

// NewLocks returns a reader of locks, or says what this JVM lacks.
func (vm *VM) NewLocks() (*Locks, error) {
	if vm.lacks(capLocks) || vm.lacks(capWaits) || vm.lacks(capThreads) {
		return nil, ErrMissing
	}
	if err := vm.readJavaFields(); err != nil {
		return nil, err
	}
	k := &Locks{vm: vm, classes: map[uint64]*lockClass{}, sites: map[lockSite][]siteLock{},
		awaited: map[uint64]uint64{}}
	var err error
	if k.klasses, err = vm.readKlassModel(); err != nil {
		return nil, err
	}
	k.mask = ^uint64(0)
	if k.pages = k.findPages(); k.pages.on && vm.java.heap.z.shift == 0 {
		k.mask = k.pages.mask
	}
	k.table = vm.flagOn("UseObjectMonitorTable")
	k.moves = vm.flagOn("UseShenandoahGC")
	k.legacy = !vm.l.locks.stack.ok()
	// 21 to 25 (runtime/globals.hpp): 0 monitors only, 1 legacy, 2 lightweight.
	if mode, told := vm.Flag("LockingMode"); told {
		k.legacy = mode.Int == lockingLegacy
	}
	return k, nil
}

// lockingLegacy is LockingMode LM_LEGACY (utilities/globalDefinitions.hpp).
const lockingLegacy = 1

// Round reads all locks of these threads once. frames has the Java frames of each thread's walk, by the address of the
// JavaThread. settled is false if a collector was at work. Then the addresses of objects may be of different moments,
// and the caller may compare only monitors with another round: monitors do not move.
func (k *Locks) Round(threads []Thread, frames map[uint64][]LockFrame) (all []ThreadLocks, settled bool) {
	before := k.vm.heapMoment()
	held := k.vm.holdColours(&k.colours) == nil
	defer k.vm.letGoColours()
	k.begin(threads)
	k.readThreads()
	k.readObjects()
	k.readList()
	all = make([]ThreadLocks, len(threads))
	for i := range threads {
		all[i] = ThreadLocks{Thread: threads[i], Virtual: k.threads[i].virtual}
		if k.threads[i].ok {
			all[i].Wants = k.wants(i)
		}
	}
	k.findHeld(all, frames)
	k.tasks.follow()
	for i := range all {
		k.computedBy(&all[i].Wants)
	}
	k.heldByBlockers(all)
	k.readUnmounted()
	settled = held && k.vm.nothingMoved(before) && k.vm.letGoColours()
	return all, settled
}

// begin forgets what the last round has read.
func (k *Locks) begin(threads []Thread) {
	k.threads = k.threads[:0]
	k.byAddr = make(map[uint64]int, len(threads))
	k.byID = make(map[uint64]int, len(threads))
	k.monitors = map[uint64]*monitor{}
	k.objects = map[uint64]uint64{}
	k.fast, k.looked, k.unmounted.locked, k.tasks = nil, false, nil, nil
	for i, t := range threads {
		k.threads = append(k.threads, lockThread{Thread: t})
		k.byAddr[t.Addr] = i
	}
	k.sortStacks()
}

// same reports whether two references lead to one object.
func (k *Locks) same(a, b uint64) bool { return a&k.mask == b&k.mask }
