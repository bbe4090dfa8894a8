package vmstructs

import (
	"goprof/process"
)

// Locks finds out which threads hold which locks, and which threads wait for locks, without stopping a thread. It reads
// in rounds. The caller compares two rounds, and uses only facts that are the same in both, about threads that did not
// run in between.
//
// A Locks uses the VM from which it was made. Both belong to one goroutine.
type Locks struct {
	vm      *VM
	klasses klassModel
	mask    uint64         // the bits of a reference that are not its colour
	virtual *Continuations // made when it is needed
	legacy  bool           // a mark word with the lowest bits 00 points to a BasicLock on the owner's stack
	table   bool           // an object's mark word does not point to its monitor (UseObjectMonitorTable)
	pages   zPages
	rests   bool // see CollectorRests
	lost    bool // a reference could not be followed, perhaps because its object was moved
	moves   bool // Shenandoah: an object's mark word may have its new address

	classes map[uint64]*lockClass // by Klass*
	sites   map[lockSite][]siteLock
	listed  []uint64 // the monitors that had an owner when the list was read
	all     bool     // the list has been read

	// The present round.
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
	tasks     *taskSearch // of the present round; nil: no thread computes a CompletableFuture
	stack     []byte
	colours   zColours
	still     stillZ
}

// LockKind is the way in which a lock is owned.
type LockKind uint8

const (
	MonitorLock   LockKind = iota + 1 // of an object
	ExclusiveLock                     // of java.util.concurrent, with one owner
	SharedLock                        // of java.util.concurrent, held by readers
	UnownableLock                     // an object that was passed to LockSupport.park, and that has no owner
	ClassLock                         // the right to initialise a class
	TaskResult                        // of a FutureTask or a CompletableFuture: the owner is the thread that computes it
)

// LockWait is the way in which a thread waits.
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
	// Class is the object's class, with slashes. It is empty if the collector is moving the object. In a ClassLock, Class
	// is the class that is being initialised, and Object is the object on which threads that need the class wait.
	Class   string
	Object  uint64 // its address, 0 if not known now
	Monitor uint64 // the ObjectMonitor, 0 if the lock has none
}

// LockOwner is the thread that holds a lock. The zero value stands for no thread, or an unknown one.
type LockOwner struct {
	Thread  uint64 // a JavaThread
	Virtual uint64 // the number of a virtual thread
	Name    string // the name of a virtual thread without a carrier
}

// Wanted is the lock that a thread waits for. How is 0 if the thread waits for no lock.
type Wanted struct {
	Lock
	How   LockWait
	Timed bool // the wait has a time limit
	Owner LockOwner
}

type Held struct {
	Lock
	Frame int // the frame that took the lock: an index in the frames of Round; -1: not known
}

// ThreadLocks is the result of one round for one thread.
type ThreadLocks struct {
	Thread  Thread
	Virtual uint64 // the number of the virtual thread that this thread runs
	Wants   Wanted
	Holds   []Held
}

const (
	maxMonitors     = 1 << 16 // entries of the list that are read; each takes a microsecond
	maxLockClasses  = 1 << 12
	maxLockStack    = 64 // entries; HotSpot's has 8 (runtime/lockStack.hpp, CAPACITY)
	maxHeldByThread = 256
)

// NewLocks returns a reader of locks, or an error with the missing capabilities of this JVM.
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
// JavaThread. settled is false if a collector was at work. Then the addresses of objects may belong to different
// moments, and the caller may only compare monitors with another round, because monitors do not move.
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

// begin clears the results of the last round.
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

// same reports whether two references lead to the same object.
func (k *Locks) same(a, b uint64) bool { return a&k.mask == b&k.mask }
