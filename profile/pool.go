package profile

import (
	"time"

	"goprof/process/maybe"
)

// Pools is what the JVM's objects show about pools of threads and of connections.
type Pools struct {
	Executors   []Executor
	Connections []Connections
	// Err is why the objects could not be read. It is empty if they were.
	Err string
}

// ExecutorKind is how an executor works.
type ExecutorKind uint8

const (
	ThreadPool ExecutorKind = iota // ThreadPoolExecutor: the JDK's, Tomcat's
	ForkJoin                       // ForkJoinPool
	Scheduler                      // the ForkJoinPool that runs virtual threads
	EventLoop                      // Netty's, with one thread each
)

// Executor runs tasks in threads of its own.
type Executor struct {
	Kind    ExecutorKind
	Class   string // with dots
	Threads []int  // for which this is known
	// Core is the number of threads that it keeps. Most is the greatest number that it may have.
	Core, Most maybe.Value[int64]
	// Queued is how many tasks wait. Room is how many more the queue takes. A queue without a bound has no Room.
	Queued, Room maybe.Value[int64]
	Scheduled    bool // some of the waiting tasks may not be due yet
	// Next is the class of the next task, with dots. Late is how long it has been due, if the program gave it a time.
	Next string
	Late time.Duration
	// Running is how many threads run a task. Done is how many tasks have ended since the executor was made.
	Running, Done maybe.Value[int64]
}

// Connections is a pool of connections (HikariCP).
type Connections struct {
	Name string
	// Most is the greatest number of connections. All is their present number. Waiting is how many threads want one.
	Most, Waiting maybe.Value[int64]
	All           int64
	// Lent has an entry for each lent connection: when the connection was last given back, by a clock of the JVM.
	Lent []int64
	// Holders are the threads that hold lent connections, as far as known.
	Holders []int
	// Longest is the length of the longest loan so far.
	Longest maybe.Value[time.Duration]
}
