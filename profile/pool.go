package profile

import (
	"time"

	"goprof/process/maybe"
)

// Pools is what the JVM's objects show about pools of threads and of connections.
type Pools struct {
	Executors   []Executor
	Connections []Connections
	// Err says why the objects could not be read. Empty: they were.
	Err string
}

// ExecutorKind is how an executor works.
type ExecutorKind uint8

const (
	ThreadPool ExecutorKind = iota // ThreadPoolExecutor: of the JDK, of Tomcat
	ForkJoin                       // ForkJoinPool
	Scheduler                      // the ForkJoinPool that runs virtual threads
	EventLoop                      // Netty's: one thread each
)

// Executor is what runs tasks in threads of its own.
type Executor struct {
	Kind    ExecutorKind
	Class   string // with dots
	Threads []int  // of which this is known
	// Core and Most are how many threads it keeps, and may have.
	Core, Most maybe.Value[int64]
	// Queued is how many tasks wait, and Room how many more the queue takes. A queue without a bound has no Room.
	Queued, Room maybe.Value[int64]
	Scheduled    bool // of the tasks that wait, some may not be due yet
	// Next is the class of the task that comes next, with dots. Late is for how long it has been due, where the program
	// gave it a time.
	Next string
	Late time.Duration
	// Running is how many threads run a task, and Done how many tasks have ended since the executor was made.
	Running, Done maybe.Value[int64]
}

// Connections is a pool of connections: HikariCP's.
type Connections struct {
	Name string
	// Most is how many it may have, All how many it has. Waiting is how many threads want one.
	Most, Waiting maybe.Value[int64]
	All           int64
	// Lent has an entry for each connection that is lent: when the connection was last given back, by a clock of the
	// JVM's.
	Lent []int64
	// Holders are the threads that hold lent connections, as far as they are known.
	Holders []int
	// Longest is how long the longest loan has lasted so far.
	Longest maybe.Value[time.Duration]
}
