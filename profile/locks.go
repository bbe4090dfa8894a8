package profile

import "fmt"

// LockKind is how a lock is owned.
type LockKind uint8

const (
	Monitor   LockKind = iota + 1 // of an object: synchronized, Object.wait
	Exclusive                     // of java.util.concurrent, with one owner: ReentrantLock, a write lock
	Shared                        // of java.util.concurrent, which many may hold: a read lock
	Unownable                     // what LockSupport.park was given, and nobody owns: a Condition, a FutureTask
)

// Lock is what a thread holds or waits for.
type Lock struct {
	Kind  LockKind
	Class string // of the object, with dots
	// ID is where the object was when the dump read it. Two locks of one dump with the same ID are one.
	ID uint64
}

// ThreadRef names a thread of a dump. The zero value is no thread.
type ThreadRef struct {
	TID     int    // 0: a virtual thread that no carrier runs
	Virtual uint64 // the virtual thread's number, 0 if it is none
	Name    string
}

// String names the thread within a sentence. The head of its stack in a dump has the same text, so a reader can search
// for it.
func (r ThreadRef) String() string {
	switch {
	case r.Virtual == 0 && r.TID == 0:
		return "nobody that is known"
	case r.Virtual == 0:
		return fmt.Sprintf("\"%s\" tid=%d", r.Name, r.TID)
	}
	text := fmt.Sprintf("virtual thread #%d", r.Virtual)
	if r.Name != "" {
		text += " \"" + r.Name + "\""
	}
	if r.TID != 0 {
		text += fmt.Sprintf(" on tid=%d", r.TID)
	}
	return text
}

// HeldLock is a lock that a thread holds.
type HeldLock struct {
	Lock
	Frame int // which of the thread's frames took the lock; -1 if that is not known
}

// LockWait is how a thread waits for a lock.
type LockWait uint8

const (
	ToEnter  LockWait = iota + 1 // BLOCKED: it wants the monitor
	ToNotify                     // in Object.wait: it has given the monitor up
	ToUnpark                     // parked
)

// WantedLock is what a thread waits for.
type WantedLock struct {
	Lock
	How   LockWait
	Timed bool      // it waits only for some time
	Owner ThreadRef // who holds the lock; zero: no thread, or that is not known
	// Alone says that the thread wants to be the lock's only owner. It is false if that is not known. A thread that
	// wants to read what readers hold waits for a writer in front of it, and not for the readers.
	Alone bool
}
