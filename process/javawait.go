package process

// JavaWait is what the JVM's structures show about a waiting thread.
type JavaWait struct {
	// Status is the state in the java.lang.Thread: PARKED, SLEEPING and so on. It is empty if it could not be read.
	Status string
	// Monitor: the thread waits to enter a monitor. Notify: it waits in Object.wait.
	Monitor, Notify bool
	// InVM: the thread waits within the JVM: for a safepoint to end, for a class, for work.
	InVM bool
	// For is the class, with slashes, of the object that the thread waits for: the monitor's object, or the argument of
	// LockSupport.park. It is empty if the caller did not ask for it, or if it could not be read.
	For string
	// Moving: a collection moved objects, so Status and For are not known.
	Moving bool
}
