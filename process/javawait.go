package process

// JavaWait is what a JVM says of a thread that stands still.
type JavaWait struct {
	// Status is java.lang.Thread's: PARKED, SLEEPING ...; empty if it could not be had.
	Status string
	// Monitor: it waits to enter one, or (Notify) in Object.wait.
	Monitor, Notify bool
	// InVM: it waits within the JVM, for a safepoint to end, for a class, for work.
	InVM bool
	// For is the class, in slashes, of what it waits for: the monitor's object, or LockSupport's blocker. Empty
	// if it was not asked for or could not be had.
	For string
	// Moving: a collection moved objects, and Status and For could not be had for that reason.
	Moving bool
}
