package profile

import "fmt"

// LockKind is how a lock is owned.
type LockKind uint8

const (
	Monitor   LockKind = iota + 1 // of an object: synchronized, Object.wait
	Exclusive                     // of java.util.concurrent, with one owner: ReentrantLock, a write lock
	Shared                        // of java.util.concurrent, with any number of owners: a read lock
	Unownable                     // an argument of LockSupport.park without an owner: a Condition
	ClassInit                     // the right to initialise a class: a thread has it while it runs the static initialiser
	Task                          // the result of a FutureTask or a CompletableFuture, which a thread computes
)

// Lock is a lock that a thread holds or waits for.
type Lock struct {
	Kind  LockKind
	Class string // of the object, with dots; for ClassInit, the initialised class
	// ID is the object's address when the dump read the object. Two locks in a dump with the same ID are the same lock.
	ID uint64
}

// Text names the lock within a sentence.
func (l *Lock) Text() string {
	if l.Kind == ClassInit {
		return "the initialisation of class " + l.Class
	}
	return fmt.Sprintf("%s 0x%x", l.Class, l.ID)
}

// ThreadRef names a thread of a dump. The zero value is no thread.
type ThreadRef struct {
	TID     int    // 0: a virtual thread without a carrier
	Virtual uint64 // the virtual thread's number, 0 if it is not one
	Name    string
}

// String names the thread within a sentence. The head of its stack in a dump has the same text, so a reader can search
// for it.
func (r ThreadRef) String() string {
	switch {
	case r.Virtual == 0 && r.TID == 0:
		return "no known thread"
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

type HeldLock struct {
	Lock
	Frame int // the index of the thread's frame that took the lock; -1 if that is not known
}

// LockWait is how a thread waits for a lock.
type LockWait uint8

const (
	ToEnter      LockWait = iota + 1 // BLOCKED: it wants the monitor
	ToNotify                         // in Object.wait: it has released the monitor
	ToUnpark                         // parked
	ToInitialize                     // another thread is initialising a class that it needs
)

// Text names the lock, and the thread that holds it.
func (w *WantedLock) Text() string {
	if w.Kind == ClassInit {
		return fmt.Sprintf("%s, which %s runs", w.Lock.Text(), w.Owner)
	}
	return fmt.Sprintf("%s, held by %s", w.Lock.Text(), w.Owner)
}

// Ownerless reports whether a thread waits without a time limit for a lock whose owner is not known. The readers of a
// lock are mostly not known.
func (w *WantedLock) Ownerless() bool {
	return w.OfAnother() && !w.Timed && w.Kind != Shared && w.Owner == (ThreadRef{})
}

// OfAnother reports whether a thread waits for something that another thread has, or may have, and not for a
// notification.
func (w *WantedLock) OfAnother() bool {
	switch w.How {
	case ToEnter, ToInitialize:
		return true
	case ToUnpark:
		return w.Kind == Exclusive || w.Kind == Shared
	}
	return false
}

// WantedLock is the lock that a thread waits for.
type WantedLock struct {
	Lock
	How   LockWait
	Timed bool      // it waits only for some time
	Owner ThreadRef // the thread that holds it; zero: none, or not known
	// Alone: the thread wants to be the lock's only owner. It is false if that is not known. A thread that wants to read
	// where readers hold the lock waits for a writer before it, and not for the readers.
	Alone bool
}
