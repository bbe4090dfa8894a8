package pools

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/process/maybe"
	"goprof/profile"
)

func stackOf(names string) (frames []profile.Frame) {
	frames = append(frames, profile.Frame{Func: &profile.Func{Name: "__futex_abstimed_wait_common"}, Kind: profile.Native})
	for _, name := range strings.Fields(names) {
		frames = append(frames, profile.Frame{Func: &profile.Func{Name: name}, Kind: profile.C1})
	}
	return frames
}

const (
	park      = "jdk.internal.misc.Unsafe.park java.util.concurrent.locks.LockSupport.park "
	condition = park + "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionNode.block " +
		"java.util.concurrent.ForkJoinPool.unmanagedBlock java.util.concurrent.ForkJoinPool.managedBlock " +
		"java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await "
	acquire = park + "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire "
	virtual = "jdk.internal.vm.Continuation.yield0 jdk.internal.vm.Continuation.yield " +
		"java.lang.VirtualThread.yieldContinuation java.lang.VirtualThread.park " +
		"java.lang.System$1.parkVirtualThread " +
		"java.util.concurrent.locks.LockSupport.park "
	transfer = park + "java.util.concurrent.LinkedTransferQueue$DualNode.await " +
		"java.util.concurrent.SynchronousQueue$Transferer.xferLifo java.util.concurrent.SynchronousQueue.xfer "
	worker = " java.util.concurrent.FutureTask.run java.util.concurrent.ThreadPoolExecutor.runWorker " +
		"java.util.concurrent.ThreadPoolExecutor$Worker.run java.lang.Thread.run"
	idle = " java.util.concurrent.ThreadPoolExecutor.getTask java.util.concurrent.ThreadPoolExecutor.runWorker " +
		"java.util.concurrent.ThreadPoolExecutor$Worker.run java.lang.Thread.run"
	shop = "shop.Cart.pay shop.Cart$$Lambda.run" + worker
)

// TestLook: stacks of real threads, as goprof dump showed them on JDK 8, 17 and 25.
func TestLook(t *testing.T) {
	for name, c := range map[string]struct {
		stack string
		want  Doing
	}{
		"runs":                          {shop, Working},
		"runs in the class library":     {"java.util.HashMap.put " + shop, Working},
		"an executor without work":      {condition + "java.util.concurrent.LinkedBlockingQueue.take" + idle, Idle},
		"an executor of cached threads": {transfer + "java.util.concurrent.SynchronousQueue.poll" + idle, Idle},
		"an executor of scheduled tasks": {condition +
			"java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue.take" + idle, Idle},
		"a pool of ForkJoin": {"jdk.internal.misc.Unsafe.park java.util.concurrent.ForkJoinPool.awaitWork " +
			"java.util.concurrent.ForkJoinPool.deactivate java.util.concurrent.ForkJoinPool.runWorker", Idle},
		"a timer, 8": {"java.lang.Object.wait java.lang.Object.wait java.util.TimerThread.mainLoop " +
			"java.util.TimerThread.run", Idle},
		"a task of the class library": {"java.lang.ProcessHandleImpl.waitForProcessExit0 " +
			"java.lang.ProcessHandleImpl$1.run" +
			worker, Working},
		"a consumer of a queue": {condition + "java.util.concurrent.LinkedBlockingQueue.take " +
			"shop.Consumer.run", Idle},
		"a consumer within a task": {condition + "java.util.concurrent.ArrayBlockingQueue.poll " + shop, Idle},
		"room":                     {condition + "java.util.concurrent.ArrayBlockingQueue.put " + shop, ForRoom},
		"room, a moment":           {transfer + "java.util.concurrent.SynchronousQueue.offer " + shop, ForRoom},
		"room, virtual":            {virtual + "java.util.concurrent.ArrayBlockingQueue.put shop.Cart.pay", ForRoom},
		"a permit":                 {acquire + "java.util.concurrent.Semaphore.acquire " + shop, ForPermit},
		"a latch":                  {acquire + "java.util.concurrent.CountDownLatch.await " + shop, ForResult},
		"a barrier": {condition + "java.util.concurrent.CyclicBarrier.dowait " +
			"java.util.concurrent.CyclicBarrier.await " + shop, ForResult},
		"a future": {park + "java.util.concurrent.FutureTask.awaitDone java.util.concurrent.FutureTask.get " +
			shop, ForResult},
		"all of some tasks": {park + "java.util.concurrent.FutureTask.awaitDone " +
			"java.util.concurrent.FutureTask.get java.util.concurrent.AbstractExecutorService.invokeAll " +
			shop, ForResult},
		"the first of some tasks": {condition + "java.util.concurrent.LinkedBlockingQueue.take " +
			"java.util.concurrent.ExecutorCompletionService.take " + shop, ForResult},
		"the end of a thread": {"java.lang.Object.wait0 java.lang.Object.wait java.lang.Thread.join " +
			"java.lang.Thread.join " + shop, ForResult},
		"a promise of Scala": {acquire + "scala.concurrent.impl.Promise$DefaultPromise.tryAwait0 " +
			"scala.concurrent.Await$.result " + shop, ForResult},
		"a consumer that asks Redis": {acquire + "java.util.concurrent.CountDownLatch.await " +
			"org.redisson.command.CommandAsyncService.get org.redisson.RedissonBlockingQueue.take " + shop, Idle},
		"a lock": {acquire + "java.util.concurrent.locks.ReentrantLock$Sync.lock " +
			"java.util.concurrent.locks.ReentrantLock.lock " + shop, ForLock},
		"a condition of the program": {condition + shop, Paused},
		"a notification":             {"java.lang.Object.wait0 java.lang.Object.wait java.lang.Object.wait " + shop, Paused},
		"a sleep": {"java.lang.Thread.sleepNanos0 java.lang.Thread.sleepNanos java.lang.Thread.sleep " +
			shop, Paused},
		"a child process, 8": {"java.lang.Object.wait java.lang.Object.wait java.lang.UNIXProcess.waitFor " +
			shop, ForProcess},
		"a child process, 25": {condition + "java.lang.ProcessImpl.waitFor " + shop, ForProcess},
		"an answer": {"sun.nio.ch.SocketDispatcher.read0 sun.nio.ch.SocketDispatcher.read " +
			"sun.nio.ch.NioSocketImpl.tryRead sun.nio.ch.NioSocketImpl.implRead " +
			"java.net.Socket$SocketInputStream.read " + shop, ForPeer},
		"an answer, virtual": {virtual + "sun.nio.ch.Poller.poll sun.nio.ch.NioSocketImpl.park " +
			"sun.nio.ch.NioSocketImpl.implRead java.net.Socket$SocketInputStream.read shop.Cart.pay", ForPeer},
		"an answer, 8": {"java.net.SocketInputStream.socketRead0 java.net.SocketInputStream.socketRead " +
			"java.net.SocketInputStream.read " + shop, ForPeer},
		"an answer, by a client": {park + "java.util.concurrent.CompletableFuture.waitingGet " +
			"java.util.concurrent.CompletableFuture.get jdk.internal.net.http.HttpClientImpl.send " +
			shop, ForPeer},
		"the next item, by a client behind a proxy": {park + "java.util.concurrent.CompletableFuture.waitingGet " +
			"java.util.concurrent.CompletableFuture.get io.lettuce.core.protocol.AsyncCommand.await " +
			"io.lettuce.core.FutureSyncInvocationHandler.handleInvocation jdk.proxy2.$Proxy42.blpop " + shop, Idle},
		"the next item, by a template": {park + "java.util.concurrent.CompletableFuture.waitingGet " +
			"java.util.concurrent.CompletableFuture.get io.lettuce.core.protocol.AsyncCommand.await " +
			"org.springframework.data.redis.core.DefaultListOperations.leftPop " + shop, Idle},
		"a client": {"sun.nio.ch.Net.accept sun.nio.ch.NioSocketImpl.accept java.net.ServerSocket.implAccept " +
			"java.net.ServerSocket.accept shop.Shop.main", Idle},
		"its turn to wait for one": {acquire + "java.util.concurrent.locks.ReentrantLock.lock " +
			"sun.nio.ch.NioSocketImpl.accept java.net.ServerSocket.implAccept java.net.ServerSocket.accept " +
			"shop.Shop.main", Idle},
		"any of many connections": {"sun.nio.ch.EPoll.wait sun.nio.ch.EPollSelectorImpl.doSelect " +
			"sun.nio.ch.SelectorImpl.lockAndDoSelect sun.nio.ch.SelectorImpl.select " +
			"io.netty.channel.nio.NioEventLoop.select", Idle},
		"any of many connections, by epoll": {"io.netty.channel.epoll.Native.epollWait " +
			"io.netty.channel.epoll.EpollEventLoop.epollWait io.netty.channel.epoll.EpollEventLoop.run", Idle},
		"an address": {"java.net.Inet6AddressImpl.lookupAllHostAddr " +
			"java.net.InetAddress$PlatformResolver.lookupByName " +
			"java.net.InetAddress.getAddressesFromNameService java.net.InetAddress.getByName " + shop, ForName},
		"an address, behind another": {acquire + "java.util.concurrent.locks.ReentrantLock.lock " +
			"java.net.InetAddress$NameServiceAddresses.get java.net.InetAddress.getAllByName0 " + shop, ForName},
		"an address for a connection": {"java.net.Inet4AddressImpl.lookupAllHostAddr " +
			"java.net.InetAddress.getAllByName java.net.Socket.<init> " + shop, ForName},
		"HikariCP": {transfer + "java.util.concurrent.SynchronousQueue.poll " +
			"com.zaxxer.hikari.util.ConcurrentBag.borrow com.zaxxer.hikari.pool.HikariPool.getConnection " +
			"com.zaxxer.hikari.HikariDataSource.getConnection " + shop, ForResource},
		"commons-pool": {condition + "org.apache.commons.pool2.impl.LinkedBlockingDeque.takeFirst " +
			"org.apache.commons.pool2.impl.GenericObjectPool.borrowObject " +
			"org.apache.commons.dbcp2.BasicDataSource.getConnection " + shop, ForResource},
		"Druid": {condition + "com.alibaba.druid.pool.DruidDataSource.takeLast " +
			"com.alibaba.druid.pool.DruidDataSource.getConnectionInternal " + shop, ForResource},
		"c3p0": {"java.lang.Object.wait com.mchange.v2.resourcepool.BasicResourcePool.awaitAvailable " +
			"com.mchange.v2.resourcepool.BasicResourcePool.prelimCheckoutResource " +
			"com.mchange.v2.resourcepool.BasicResourcePool.checkoutResource " + shop, ForResource},
		"Tomcat's pool": {acquire + "java.util.concurrent.CountDownLatch.await " +
			"org.apache.tomcat.jdbc.pool.FairBlockingQueue.poll " +
			"org.apache.tomcat.jdbc.pool.ConnectionPool.borrowConnection " + shop, ForResource},
		"Apache's client": {condition + "org.apache.http.pool.AbstractConnPool.getPoolEntryBlocking " +
			"org.apache.http.pool.AbstractConnPool$2.get " +
			"org.apache.http.impl.conn.PoolingHttpClientConnectionManager.leaseConnection " + shop, ForResource},
		"Jetty's pool of threads": {condition + "org.eclipse.jetty.util.BlockingArrayQueue.poll " +
			"org.eclipse.jetty.util.thread.QueuedThreadPool$Runner.idleJobPoll " +
			"org.eclipse.jetty.util.thread.QueuedThreadPool$Runner.run", Paused},
		"a pool of workers": {condition + "java.util.concurrent.LinkedBlockingQueue.take shop.WorkerPool.get " +
			"shop.Worker.run", Idle},
		"a pool that hands out work": {condition + "java.util.concurrent.LinkedBlockingQueue.take " +
			"shop.RequestPool.getNextTask shop.Worker.run", Idle},
	} {
		got := Look(stackOf(c.stack), false)
		if got.Doing != c.want {
			t.Errorf("%s: %v, not %v", name, got.Doing, c.want)
		}
		if got.Doing >= ForResource && !strings.HasPrefix(got.Site, "shop.") {
			t.Errorf("%s: the site is %q", name, got.Site)
		}
	}
	if got := Look(stackOf(shop), true); got != (Spot{Doing: ForLock, Site: "shop.Cart.pay"}) {
		t.Errorf("blocked: %+v", got)
	}
	lookUp := "java.net.InetAddress.checkLookupTable java.net.InetAddress.getAllByName "
	if got := Look(stackOf(lookUp+shop), true); got.Doing != ForName {
		t.Errorf("blocked behind another look-up: %+v", got)
	}
}

// TestAt: the JVM's own word for a thread with any kind of wait is not taken for a lock.
func TestAt(t *testing.T) {
	asleep := stackOf("java.lang.Thread.sleep " + shop)
	for want, thread := range map[Doing]profile.ThreadDump{Paused: {TID: 7, State: "waiting"},
		ForLock: {State: "blocked", Virtual: &profile.VirtualThread{ID: 30}}} {
		thread.Stack.Frames = asleep
		if got := At(&thread).Doing; got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestOf: names that only differ by a number are one pool.
func TestOf(t *testing.T) {
	var threads []profile.ThreadDump
	for _, name := range []string{"http-1", "http-2", "main", "http-3"} {
		threads = append(threads, profile.ThreadDump{TID: len(threads) + 1, Name: name, State: "PARKED",
			Stack: profile.Stack{Frames: stackOf(acquire + "java.util.concurrent.Semaphore.acquire " + shop)}})
	}
	threads[0].State = "BLOCKED"
	threads = append(threads, profile.ThreadDump{Virtual: &profile.VirtualThread{ID: 30}},
		profile.ThreadDump{Virtual: &profile.VirtualThread{ID: 31}})
	got := Of(threads, func(t *profile.ThreadDump) bool { return t.Name != "main" })
	if len(got) != 2 || got[0].Name != "http-*" || len(got[0].Members) != 3 || got[0].Count(ForPermit) != 3 ||
		got[1].Name != Unnamed || got[1].Count(Working) != 2 {
		t.Errorf("%+v", got)
	}
}

// TestKnown: the threads of an executor are one pool, whatever their names are. Event loops with one name, and threads
// without a known executor, are pools by name. One thread without an executor is not a pool.
func TestKnown(t *testing.T) {
	n := func(n int64) maybe.Value[int64] { return maybe.Known(n) }
	known := &profile.Pools{Executors: []profile.Executor{
		{Class: "java.util.concurrent.ThreadPoolExecutor", Threads: []int{1, 2, 3}, Most: n(200), Queued: n(1431), Room: n(0),
			Running: n(2), Done: n(70)},
		{Kind: profile.EventLoop, Threads: []int{4}, Most: n(1), Queued: n(2)},
		{Kind: profile.EventLoop, Threads: []int{5}, Most: n(1), Queued: n(3)},
		{Kind: profile.ForkJoin, Threads: []int{6}},
		{Threads: []int{7}, Queued: n(2), Scheduled: true, Late: 90 * time.Second, Running: n(0)},
		{Threads: []int{12}, Most: n(unlimited), Queued: n(0), Running: n(1)},
		{Threads: []int{13, 14}, Most: n(unlimited), Queued: n(0), Running: n(0)},
	}}
	var threads []profile.ThreadDump
	for i, name := range []string{"order 7", "http-2", "http-3", "loop-1", "loop-2", "fork-1", "timer", "main", "own-1",
		"own-2", "own-3", "HttpClient-1-Worker-0", "HttpClient-22-Worker-0", "HttpClient-22-Worker-11"} {
		threads = append(threads, profile.ThreadDump{TID: i + 1, Name: name, Java: true,
			Stack: profile.Stack{Frames: stackOf(shop)}})
	}
	threads[9].Stack.Frames = stackOf(condition + "java.util.concurrent.LinkedBlockingQueue.take shop.Consumer.run")
	got := map[string]bool{}
	for _, p := range Known(threads, known) {
		got[p.Name+": "+p.Load()] = true
	}
	want := map[string]bool{
		"order *: 2 of 3 busy (it may have 200), 1431 queued, which is all that it takes": true,
		"loop-*: 2 of 2 busy, 5 queued":                           true,
		"fork-*: 1 of 1 busy, queue not known":                    true,
		"timer: 0 of 1 busy, 2 scheduled, the next 1m30s overdue": true,
		"HttpClient-*-Worker-*: 1 of 3 busy, 0 queued":            true,
		"own-*: 2 of 3 busy":                                      true,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestUsers: a thread uses a connection if it is inside a call of a HikariCP connection, or is known to hold one. The
// result shows what the thread waits for, and which method of the program made the call. If there are several pools,
// only holders are known.
func TestUsers(t *testing.T) {
	read := "java.net.SocketInputStream.socketRead0 java.net.SocketInputStream.read org.postgresql.core.PGStream.receive "
	threads := []profile.ThreadDump{
		{TID: 1, Stack: profile.Stack{Frames: stackOf(read + "com.zaxxer.hikari.pool.ProxyStatement.executeQuery " +
			"com.zaxxer.hikari.pool.HikariProxyStatement.executeQuery shop.Stock.ask shop.Cart.pay")}, Peer: "10.0.0.7:5432"},
		{TID: 2, Stack: profile.Stack{Frames: stackOf(read + "shop.Stock.ask")}},
		{TID: 3, Stack: profile.Stack{Frames: stackOf(acquire +
			"com.zaxxer.hikari.pool.HikariPool.getConnection shop.Stock.ask")}},
		{TID: 4, Stack: profile.Stack{Frames: stackOf("java.lang.Thread.sleep shop.Audit.run")}},
	}
	c := &profile.Connections{All: 9, Most: maybe.Known(int64(10)), Waiting: maybe.Known(int64(187)),
		Lent: make([]int64, 9), Longest: maybe.Known(4 * time.Minute), Holders: []int{4}}
	const uses = "1: waits for 10.0.0.7:5432 in shop.Stock.ask"
	const holds = "1: sleeps or waits for a notification in shop.Audit.run"
	if d := cmp.Diff([]string{holds, uses}, Does(Users(threads, c, true))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{holds}, Does(Users(threads, c, false))); d != "" {
		t.Error(d)
	}
	if got := ConnectionsLoad(c); got != "9 of 10 connections out, 187 wait for one, the first for 4m0s" {
		t.Error(got)
	}
}
