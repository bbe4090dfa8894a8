package process

// JavaWait is what a JVM says of a thread that stands still.
type JavaWait struct {
	// Status is the state that java.lang.Thread says: PARKED, SLEEPING ... It is empty if it could not be read.
	Status string
	// Monitor: the thread waits to enter a monitor. Notify: it waits in Object.wait.
	Monitor, Notify bool
	// InVM: the thread waits within the JVM: for a safepoint to end, for a class, for work.
	InVM bool
	// For is the class, with slashes, of the object that the thread waits for: the monitor's object, or the object that
	// LockSupport.park was given. It is empty if it was not asked for or could not be read.
	For string
	// Moving: a collection moved objects, so Status and For are not known.
	Moving bool
}
