package vmstructs

import (
	"cmp"
	"strings"

	"goprof/process/maybe"
)

const (
	classThreadPool  = "java/util/concurrent/ThreadPoolExecutor"
	classTomcatPool  = "org/apache/tomcat/util/threads/ThreadPoolExecutor" // a copy of the JDK's, since Tomcat 10
	classForkJoin    = "java/util/concurrent/ForkJoinPool"
	classWorkQueue   = "java/util/concurrent/ForkJoinPool$WorkQueue"
	classEventLoop   = "io/netty/util/concurrent/SingleThreadEventExecutor"
	classForkThread  = "java/util/concurrent/ForkJoinWorkerThread"
	classCarrier     = "jdk/internal/misc/CarrierThread"
	classAtomicInt   = "java/util/concurrent/atomic/AtomicInteger"
	classAQS         = "java/util/concurrent/locks/AbstractQueuedSynchronizer"
	classLinked      = "java/util/concurrent/LinkedBlockingQueue"
	classLinkedDeque = "java/util/concurrent/LinkedBlockingDeque"
	classArrayQueue  = "java/util/concurrent/ArrayBlockingQueue"
	classPriority    = "java/util/concurrent/PriorityBlockingQueue"
	classDelayed     = "java/util/concurrent/ScheduledThreadPoolExecutor$DelayedWorkQueue"
	classScheduled   = "java/util/concurrent/ScheduledThreadPoolExecutor$ScheduledFutureTask"
	classSynchronous = "java/util/concurrent/SynchronousQueue"
)

type worker struct {
	kind     ExecutorKind
	executor poolObject
	object   poolObject // a ThreadPoolExecutor$Worker
}

// wrappers are the names of fields by which a Runnable refers to another Runnable, or to its executor. They are in
// ThreadPoolExecutor$Worker, Tomcat's TaskThread$WrappingRunnable, Netty's FastThreadLocalRunnable and
// ThreadExecutorMap, threads of factories, and lambda expressions.
var wrappers = []string{"this$0", "val$eventExecutor", "wrappedRunnable", "runnable", "target", "task", "delegate",
	"val$r", "val$runnable", "r", "arg$1", "arg$2"}

// workerOf finds the executor of a thread by the thread's Runnable. The worker must refer back to the thread, because a
// Runnable of the program may refer to other executors.
func (p *Pools) workerOf(thread uint64) (w worker, ok bool) {
	t, ok := p.read(thread)
	if !ok {
		return w, false
	}
	if t.is(classForkThread) {
		w.kind = ForkJoin
		if t.is(classCarrier) {
			w.kind = Scheduler
		}
		w.executor, ok = p.follow(&t, classForkThread, "pool")
		return w, ok && w.executor.is(classForkJoin)
	}
	o, ok := p.follow(&t, classThread, "target") // up to 18
	if !ok {
		holder, _ := p.follow(&t, classThread, "holder")
		o, ok = p.follow(&holder, "java/lang/Thread$FieldHolder", "task")
	}
	for n := 0; ok && n < maxWrapped; n++ {
		for _, pool := range []string{classThreadPool, classTomcatPool} {
			if o.is(pool + "$Worker") {
				w.executor, ok = p.follow(&o, pool+"$Worker", "this$0")
				w.object = o
				return w, ok && w.executor.is(pool) && p.k.same(p.ref(&o, pool+"$Worker", "thread"), t.at)
			}
		}
		if o.is(classEventLoop) {
			w.kind, w.executor = EventLoop, o
			return w, p.k.same(p.ref(&o, classEventLoop, "thread"), t.at)
		}
		o, ok = p.unwrap(&o)
	}
	return w, false
}

// unwrap reads the first object to which a wrapper refers.
func (p *Pools) unwrap(o *poolObject) (poolObject, bool) {
	for _, name := range wrappers {
		if at := p.ref(o, "", name); at != 0 {
			return p.read(at)
		}
	}
	return poolObject{}, false
}

// addWorker adds a worker's running and finished tasks to the executor's. If the tasks of one worker are not known,
// those of the executor are not known either.
func (p *Pools) addWorker(e *Executor, w worker) {
	if e.Kind != ThreadPool {
		return
	}
	add := func(to *maybe.Value[int64], worker maybe.Value[int64]) {
		n, ok1 := to.Get()
		more, ok2 := worker.Get()
		*to = maybe.If(n+max(more, 0), ok1 && ok2)
	}
	// Worker is a lock. Its state is 1 while a task runs (ThreadPoolExecutor.runWorker), and -1 before the first task.
	add(&e.Running, w.object.number(classAQS, "state"))
	add(&e.Done, w.object.long("", "completedTasks"))
}

func (p *Pools) readExecutor(e *Executor, o poolObject) {
	switch e.Kind {
	case ThreadPool:
		pool := classThreadPool
		if o.is(classTomcatPool) {
			pool = classTomcatPool
		}
		e.Core, e.Most = o.number(pool, "corePoolSize"), o.number(pool, "maximumPoolSize")
		e.Done, e.Running = o.long(pool, "completedTaskCount"), maybe.Known(int64(0)) // workers add to these
		if q, ok := p.follow(&o, pool, "workQueue"); ok {
			p.readQueue(e, q)
		}
	case ForkJoin, Scheduler:
		p.readForkJoin(e, o)
	case EventLoop:
		e.Core, e.Most = maybe.Known(int64(1)), maybe.Known(int64(1))
		if q, ok := p.follow(&o, classEventLoop, "taskQueue"); ok {
			p.readQueue(e, q)
		}
	}
}

// readQueue reads a queue's length, its free room and its next task.
func (p *Pools) readQueue(e *Executor, q poolObject) {
	var next uint64
	switch {
	case q.is(classLinked):
		count, _ := p.follow(&q, classLinked, "count")
		e.Queued = count.number(classAtomicInt, "value")
		e.room(q.number(classLinked, "capacity"))
		head, _ := p.follow(&q, classLinked, "head") // an empty node
		first, _ := p.follow(&head, "", "next")
		next = p.ref(&first, "", "item")
	case q.is(classLinkedDeque):
		e.Queued = q.number(classLinkedDeque, "count")
		e.room(q.number(classLinkedDeque, "capacity"))
		first, _ := p.follow(&q, classLinkedDeque, "first")
		next = p.ref(&first, "", "item")
	case q.is(classArrayQueue):
		e.Queued = q.number(classArrayQueue, "count")
		at, _ := q.number(classArrayQueue, "takeIndex").Get()
		items, length := p.ref(&q, classArrayQueue, "items"), maybe.Value[int64]{}
		if first, ok := p.elements(items, int(at), 1); ok && len(first) == 1 {
			next, length = first[0], p.length(items)
		}
		e.room(length)
	case q.is(classPriority), q.is(classDelayed):
		e.Queued, e.Scheduled = q.number("", "size"), q.is(classDelayed)
		if first, ok := p.elements(p.ref(&q, "", "queue"), 0, 1); ok && len(first) == 1 {
			next = first[0]
		}
	case q.is(classSynchronous): // hands tasks over, and never holds any
		e.Queued, e.Room = maybe.Known(int64(0)), maybe.Known(int64(0))
	case multiProducer(&q):
		// JCTools' index of producers grows by two for each element, and so does that of consumers
		// (BaseMpscLinkedArrayQueue.size).
		in, ok1 := q.long("", "producerIndex").Get()
		out, ok2 := q.long("", "consumerIndex").Get()
		e.Queued = maybe.If(max(0, (in-out)/2), ok1 && ok2)
	}
	if n, ok := e.Queued.Get(); !ok || n < 0 {
		e.Queued, e.Room = maybe.Value[int64]{}, maybe.Value[int64]{}
		return
	}
	if task, ok := p.read(next); ok {
		e.Due = task.long(classScheduled, "time")
		e.Next = p.taskClass(task)
	}
}

// room sets the free room in a queue with that capacity. A queue for 2^31-1 elements counts as unbounded.
func (e *Executor) room(capacity maybe.Value[int64]) {
	n, ok1 := e.Queued.Get()
	most, ok2 := capacity.Get()
	e.Room = maybe.If(max(0, most-n), ok1 && ok2 && most < 1<<31-1)
}

// multiProducer reports whether a queue is Netty's: a class of JCTools in one of Netty's packages.
func multiProducer(q *poolObject) bool {
	for name := range q.class.supers {
		if strings.HasSuffix(name, "jctools/queues/BaseMpscLinkedArrayQueue") {
			return true
		}
	}
	return false
}

func (p *Pools) length(array uint64) maybe.Value[int64] {
	n, err := p.k.vm.mem.I32(array + p.k.vm.java.heap.arrayLength)
	return maybe.If(int64(n), err == nil && n >= 0)
}

// taskClass returns the class of the program's own task, inside the JDK's wrappers.
func (p *Pools) taskClass(task poolObject) string {
	for range maxWrapped {
		wrapped := uint64(0)
		for _, w := range taskWrappers {
			if task.is(w.class) {
				wrapped = p.ref(&task, "", w.field)
			}
		}
		inner, ok := p.read(wrapped)
		if !ok {
			break
		}
		task = inner
	}
	return task.class.name
}

// taskWrappers are the JDK's classes around the program's tasks.
var taskWrappers = []struct{ class, field string }{
	{"java/util/concurrent/FutureTask", "callable"},
	{"java/util/concurrent/Executors$RunnableAdapter", "task"},
	{"java/util/concurrent/CompletableFuture$AsyncSupply", "fn"},
	{"java/util/concurrent/CompletableFuture$AsyncRun", "fn"},
	{"java/util/concurrent/CompletableFuture$UniCompletion", "fn"},
}

// forkParallelism is the mask of the parallelism in ForkJoinPool.mode (9 to 18) or config (8) (SMASK).
const forkParallelism = 1<<16 - 1

// readForkJoin adds up the queues of a ForkJoinPool: those of its threads, and those of submitters.
func (p *Pools) readForkJoin(e *Executor, o poolObject) {
	e.Core = o.number(classForkJoin, "parallelism") // since 19
	for _, name := range []string{"mode", "config"} {
		if _, ok := e.Core.Get(); ok {
			break
		}
		bits, ok := o.number(classForkJoin, name).Get()
		e.Core = maybe.If(bits&forkParallelism, ok)
	}
	array := cmp.Or(p.ref(&o, classForkJoin, "queues"), p.ref(&o, classForkJoin, "workQueues")) // 8
	queues, ok := p.elements(array, 0, maxPoolArray)
	sum := int64(0)
	for _, at := range queues {
		if at == 0 || !ok {
			continue
		}
		q, read := p.read(at)
		base, ok1 := q.number(classWorkQueue, "base").Get()
		top, ok2 := q.number(classWorkQueue, "top").Get()
		ok = read && ok1 && ok2
		sum += max(0, int64(int32(top-base)))
	}
	e.Queued = maybe.If(sum, ok)
}
