package pools

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// primitives are the methods in which threads wait: the innermost Java method of a waiting thread is one of these. The
// names are those of JDK 8 to 27.
var primitives = methods(
	"jdk.internal.misc.Unsafe park", "sun.misc.Unsafe park",
	"java.lang.Object wait wait0",
	"java.lang.Thread sleep sleep0 sleepNanos0",
	"java.lang.VirtualThread park parkNanos yieldContinuation",
	"jdk.internal.vm.Continuation yield yield0 doYield",
	"java.net.SocketInputStream socketRead0",
	"java.net.PlainSocketImpl socketConnect socketAccept",
	"java.net.Inet4AddressImpl lookupAllHostAddr getHostByAddr",
	"java.net.Inet6AddressImpl lookupAllHostAddr getHostByAddr",
	"java.io.FileInputStream readBytes read0",
	"sun.nio.ch.Net poll connect connect0 accept",
	"sun.nio.ch.SocketDispatcher read0 readv0 write0",
	"sun.nio.ch.FileDispatcherImpl read0 write0",
	"sun.nio.ch.UnixFileDispatcherImpl read0 write0",
	"sun.nio.ch.ServerSocketChannelImpl accept0",
	"sun.nio.ch.EPoll wait", "sun.nio.ch.EPollArrayWrapper epollWait",
	"io.netty.channel.epoll.Native *", "io.netty.channel.uring.Native *",
)

func isPrimitive(method string) bool { return primitives.has(method) }

// kind is a way to wait, with the methods of the class library in which threads are then.
type kind struct {
	doing   Doing
	methods methodSet
	// last: the callers of such a method do not matter.
	last bool
}

// queues are the queues of the class library that threads wait in.
var queues = []string{"ArrayBlockingQueue", "LinkedBlockingQueue", "LinkedBlockingDeque", "PriorityBlockingQueue",
	"DelayQueue", "SynchronousQueue", "LinkedTransferQueue", "ScheduledThreadPoolExecutor"}

// kinds: of the methods between the primitive and the program, the outermost decides. Process.waitFor waits in a
// Condition, and ThreadPoolExecutor.getTask in a queue.
var kinds = []kind{
	{ForName, methods("java.net.InetAddress getAllByName getAllByName0 getByName getLocalHost "+
		"getAddressesFromNameService getNameServiceAddresses checkLookupTable getHostName getCanonicalHostName "+
		"getHostFromNameService",
		"java.net.Inet4AddressImpl *", "java.net.Inet6AddressImpl *"), true},
	{ForProcess, methods("java.lang.ProcessImpl waitFor", "java.lang.UNIXProcess waitFor", "java.lang.Process waitFor"),
		true},
	{Idle, methods("java.util.concurrent.ThreadPoolExecutor getTask", "java.util.concurrent.ForkJoinPool awaitWork",
		"java.util.concurrent.DelayScheduler *", "java.util.TimerThread *", "java.lang.ref.ReferenceQueue remove *",
		"java.net.ServerSocket *", "java.net.DatagramSocket receive", "sun.nio.ch.DatagramChannelImpl *",
		"sun.nio.ch.ServerSocketChannelImpl *", "sun.nio.ch.SelectorImpl *", "sun.nio.ch.EPollSelectorImpl *",
		"sun.nio.ch.EPollPort *", "io.netty.channel.epoll.Native *", "io.netty.channel.uring.Native *"), true},
	{Idle, inQueues("take takeFirst takeLast poll pollFirst pollLast"), false},
	{ForRoom, inQueues("put putFirst putLast offer offerFirst offerLast transfer tryTransfer"), false},
	{ForPermit, methods("java.util.concurrent.Semaphore acquire acquireUninterruptibly tryAcquire"), false},
	{ForResult, methods("java.util.concurrent.FutureTask get awaitDone",
		"java.util.concurrent.CompletableFuture get join waitingGet timedGet",
		"java.util.concurrent.ForkJoinTask *", "java.util.concurrent.CountDownLatch await",
		"java.util.concurrent.CyclicBarrier await dowait", "java.util.concurrent.Phaser *",
		"java.util.concurrent.Exchanger exchange", "java.util.concurrent.ExecutorCompletionService take poll",
		"java.util.concurrent.AbstractExecutorService invokeAll invokeAny",
		"java.util.concurrent.ThreadPoolExecutor awaitTermination",
		"java.util.concurrent.ForkJoinPool awaitTermination awaitQuiescence invoke invokeAll",
		"java.util.concurrent.StructuredTaskScope *", "java.util.concurrent.StructuredTaskScopeImpl *",
		"java.util.concurrent.ThreadPerTaskExecutor awaitTermination", "jdk.internal.misc.ThreadFlock awaitAll",
		"java.lang.Thread join", "java.lang.VirtualThread joinNanos", "scala.concurrent.Await *",
		"scala.concurrent.impl.Promise *"), false},
	{ForLock, methods("java.util.concurrent.locks.ReentrantLock *",
		"java.util.concurrent.locks.ReentrantReadWriteLock *", "java.util.concurrent.locks.StampedLock *"), false},
	{ForPeer, methods("java.net.SocketInputStream *", "java.net.Socket *", "java.net.PlainSocketImpl *",
		"sun.nio.ch.NioSocketImpl *", "sun.nio.ch.SocketChannelImpl *",
		"jdk.internal.net.http.HttpClientImpl send", "sun.net.www.http.HttpClient *"), false},
	{Paused, methods("clojure.core.async *"), true}, // its channels wait as futures do
}

// waitOf returns the kind of wait in these methods of the class library, leaf first.
func waitOf(names []string, d Doing) Doing {
	for _, name := range names {
		for i := range kinds {
			if k := &kinds[i]; k.methods.has(name) {
				if d = k.doing; k.last {
					return d
				}
				break
			}
		}
	}
	return d
}

// methodSet has methods by class. "*" stands for all methods of the class.
type methodSet map[string][]string

// methods makes a methodSet from lines such as "java.lang.Object wait wait0".
func methods(lines ...string) methodSet {
	set := methodSet{}
	for _, line := range lines {
		words := strings.Fields(line)
		set[words[0]] = words[1:]
	}
	return set
}

func inQueues(names string) methodSet {
	set := methodSet{}
	for _, class := range queues {
		set["java.util.concurrent."+class] = strings.Fields(names)
	}
	return set
}

func (set methodSet) has(name string) bool {
	class, method := split(name)
	of, ok := set[class]
	return ok && (slices.Contains(of, method) || slices.Contains(of, "*"))
}

// nearby is how many methods of the program are searched for the purpose of a wait.
const nearby = 8

// A pool of resources lends objects that must be given back. The class library has no such pools, so goprof recognises
// them by the names of classes and methods: HikariPool.getConnection, GenericObjectPool.borrowObject,
// DruidDataSource.takeLast. Pools of threads and of messages have similar names, but their threads wait for work.
var resourceNames = sync.OnceValue(func() (of struct{ pool, work, handOut, workItem *regexp.Regexp }) {
	of.pool = regexp.MustCompile(`(?:Pool|PoolBase|Bag|Pool(?:ing|ed|Impl|Manager)[A-Za-z]*|DataSource[A-Za-z]*|` +
		`Connection(?:Manager|Provider|Source)[A-Za-z]*)$`)
	of.work = regexp.MustCompile(`(?:Thread|Work|Task|Job|Executor|Message|Event|ForkJoin|Runn)[A-Za-z]*$`)
	of.handOut = regexp.MustCompile(`^(?:borrow|acquire|lease|check_?[oO]ut|prelimCheckout|reserve|obtain|get$|` +
		`get(?:Connection|Resource|Object|Pool|Entry|Client|Session|Channel)|(?:take|poll)(?:First|Last)?$)`)
	of.workItem = regexp.MustCompile(`Task|Job|Work|Message|Event|Next`)
	return of
})

// handsOut returns the outermost method near the wait that hands out a resource.
func handsOut(names []string) (from string, at int) {
	of := resourceNames()
	for i, name := range names {
		dot := strings.LastIndexByte(name, '.')
		class, method := name[:max(dot, 0)], name[dot+1:]
		class = class[strings.LastIndexAny(class, ".$")+1:]
		if of.pool.MatchString(class) && !of.work.MatchString(class) && of.handOut.MatchString(method) &&
			!of.workItem.MatchString(method) {
			from, at = name, i
		}
	}
	return from, at
}

// caller returns the first method outside of the code that hands out the resource. That code is one class, or for a
// package of three parts or more, all classes that share its first two parts (org.apache).
func caller(names []string, at int) string {
	class := names[at][:strings.LastIndexByte(names[at], '.')+1]
	maker := class
	if parts := strings.SplitN(class, ".", 4); len(parts) == 4 && parts[3] != "" {
		maker = parts[0] + "." + parts[1] + "."
	}
	for _, name := range names[at+1:] {
		if !strings.HasPrefix(name, class) && !strings.HasPrefix(name, maker) {
			return name
		}
	}
	return names[at]
}

// consumer matches methods that wait for the next item of a source. Clients that work in the background wait for it as
// for a result (RedissonBlockingQueue.take).
var consumer = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:take|poll|receive[a-z]*|dequeue|b?(?:[lrz]|left|right)?(?:pop|move)[a-z]*|` +
		`bzpop[a-z]*|xread[a-z]*|next|hasNext|waitForNext|next(?:Message|Event|Record|Batch)[a-z]*|consume[a-z]*|fetch|` +
		`listen|subscribe)$`)
})

func consumes(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, method := split(name)
		return consumer().MatchString(method)
	})
}
