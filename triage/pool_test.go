package triage

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/profile"
)

// virtually are frames of a virtual thread that waits as another thread does.
func virtually(frames []string) []string { return append([]string{parkVirtual}, frames[1:]...) }

// TestStuckPools: what is said of pools whose threads wait inside their tasks.
func TestStuckPools(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*patient)
		claim    string
		evidence string
	}{
		"no room": {func(p *patient) { p.waitInTask(2, 6, inPut...) },
			"5 of 5 threads pool-1-thread-* wait to put something into a full queue, for at least 10 s: nothing was taken",
			"5 in shop.Producer.run"},
		"their own subtasks": {func(p *patient) { p.waitInTask(2, 6, inGet...) },
			"5 of 5 threads pool-1-thread-* wait for the result of other tasks, for at least 10 s", "5 in shop.Report.make"},
		"two threads, and their own subtasks": {func(p *patient) {
			p.onlyThreads(4)
			p.waitInTask(2, 3, inGet...)
			for i := range p.Dumps {
				p.Dumps[i].Threads[3].Name = "Reference Handler"
				p.Dumps[i].Threads[3].Stack = *stack(profile.NativeMethod, "java.lang.ref.Reference.waitForReferencePendingList")
			}
		}, "2 of 2 threads pool-1-thread-* wait for the result of other tasks, for at least 10 s: no other thread",
			"2 in shop.Report.make"},
		"children that sleep": {func(p *patient) {
			p.waitInTask(2, 6, inWaitFor...)
			p.Children = []Child{{PID: 9, Name: "sleep"}, {PID: 10, Name: "sleep"}}
		}, "5 of 5 threads pool-1-thread-* wait for child processes to end, for at least 10 s", "child processes: 2 sleep"},
		"a database that does not answer": {func(p *patient) {
			p.waitInTask(2, 4, inBorrow...)
			p.waitInTask(5, 6, inRead...)
			for i := range p.Dumps {
				p.Dumps[i].Remotes = map[int]Remote{5: {remote, "ESTABLISHED"}, 6: {remote, "ESTABLISHED"}}
			}
		}, "3 of 5 threads pool-1-thread-* wait for acme.db.pool.ConnectionPool.getConnection to hand something out, for " +
			"at least 10 s", "2 of the same pool: waits for 10.0.0.7:5432 in shop.Stock.ask"},
		"a row that is locked": {func(p *patient) {
			p.waitInTask(2, 4, inBorrow...)
			p.waitInTask(5, 6, inQuery...)
		}, "3 of 5 threads pool-1-thread-* wait for acme.db.pool.ConnectionPool.getConnection",
			"2 of the same pool: sleeps or waits for a notification in acme.db.Statement.execute"},
		"leaked connections, and threads that give up": {func(p *patient) {
			p.waitInTask(2, 6, inBorrow...)
			p.Readings[5].Threads[3].Turns = known(uint64(9))
		}, "5 of 5 threads pool-1-thread-* wait for acme.db.pool.ConnectionPool.getConnection to hand something out, for " +
			"most of the time",
			"no thread of the same pool uses what it waits for"},
		"virtual threads without permits": {func(p *patient) { p.virtualWait(300, virtually(inAcquire)...) },
			"300 of 300 virtual threads wait for a permit of a Semaphore, for at least 10 s", "300 in shop.Gate.pass"},
		"virtual threads, and a server that does not answer": {func(p *patient) {
			p.virtualWait(300, virtually(inRead)...)
			p.Dumps[2].Opened = map[netip.AddrPort]int{remote: 300}
		}, "300 of 300 virtual threads wait for an answer from 10.0.0.7:5432", "300 in shop.Stock.ask"},
		"such ones with clients": {func(p *patient) {
			p.virtualWait(300, parkVirtual, "java.net.Socket$SocketInputStream.read", "org.postgresql.core.PGStream.read",
				"shop.Stock.ask")
			p.Dumps[2].Opened, p.Dumps[2].Accepted = map[netip.AddrPort]int{remote: 300}, 300
		}, "300 of 300 virtual threads wait for an answer from 10.0.0.7:5432", ""},
	} {
		p := healthy()
		c.change(p)
		got := Judge(p.Evidence)
		if !slices.Equal(ids(got), []profile.FindingID{profile.PoolStuck}) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		f := got.Findings[0]
		if !strings.HasPrefix(f.Claim, c.claim) || !strings.Contains(strings.Join(f.Evidence, "\n"), c.evidence) {
			t.Errorf("%s: %s\n%s", name, f.Claim, strings.Join(f.Evidence, "\n"))
		}
	}
}

// TestPoolsThatGoOn: pools whose threads wait by the same methods, and nothing is wrong.
func TestPoolsThatGoOn(t *testing.T) {
	for name, change := range map[string]func(*patient){
		"producers that are faster than their consumer": func(p *patient) {
			p.waitInTask(2, 6, inPut...)
			for i, r := range p.Readings {
				r.Threads[3].Turns = known(uint64(i)) // one of them moves
			}
		},
		"a batch that a pool computes": func(p *patient) {
			p.waitInTask(2, 6, inGet...)
			p.Rates.Threads[0].CPU = known(0.5)
		},
		"a batch that computes on a busy machine": func(p *patient) {
			p.waitInTask(2, 6, inGet...)
			p.Rates.Threads[0].CPU, p.Rates.Threads[0].Waited = known(0.01), known(0.5)
		},
		"one of five has work": func(p *patient) {
			p.waitInTask(2, 5, inPut...)
			p.burn(6, 10, "", "shop.Cart.step1")
		},
		"one of five is idle": func(p *patient) { p.waitInTask(2, 5, inAcquire...) },
		"two threads": func(p *patient) {
			p.onlyThreads(3)
			p.waitInTask(2, 3, inPut...)
		},
		"two threads that wait for an answer from elsewhere": func(p *patient) {
			p.onlyThreads(3)
			p.waitInTask(2, 3, park, "java.util.concurrent.CompletableFuture.join", "shop.Report.make",
				"java.util.concurrent.ThreadPoolExecutor.runWorker")
		},
		"two threads that wait until the program ends": func(p *patient) {
			p.onlyThreads(3)
			p.waitInTask(2, 3, park, "java.util.concurrent.CountDownLatch.await", "shop.Server.stay")
		},
		"two threads that wait for a task that sleeps": func(p *patient) {
			p.onlyThreads(4)
			p.waitInTask(2, 3, inGet...)
			for i := range p.Dumps {
				p.Dumps[i].Threads[3].Name = "helper"
				p.Dumps[i].Threads[3].Stack = *stack(profile.C2, "java.lang.Thread.sleep", "shop.Report.part",
					"java.util.concurrent.ThreadPoolExecutor.runWorker")
			}
		},
		"consumers of an empty queue": func(p *patient) {
			p.waitInTask(2, 6, park, "java.util.concurrent.LinkedBlockingQueue.take", "shop.Consumer.run")
		},
		"connections that are enough": func(p *patient) {
			p.waitInTask(2, 6, "java.lang.Thread.sleep", "shop.Cart.pay")
			for tid := 2; tid <= 6; tid++ {
				p.rest(tid, 5000, "parked: x", inBorrow...)
			}
		},
		"children that compute": func(p *patient) {
			p.waitInTask(2, 6, inWaitFor...)
			p.Children = []Child{{PID: 9, Name: "ffmpeg", CPU: 1.2}}
		},
		"children that come and go": func(p *patient) {
			p.waitInTask(2, 6, inWaitFor...)
			p.Children = []Child{{PID: 9, Name: "true", Began: true}}
		},
		"a pool that was in another wait a moment ago": func(p *patient) {
			p.waitInTask(2, 6, inPut...)
			p.Dumps[1].Threads[2].Stack = *stack(profile.C2, inAcquire...)
		},
		"virtual threads that others have come after": func(p *patient) {
			p.virtualWait(300, virtually(inPut)...)
			for i := range p.Dumps[2].Virtual {
				p.Dumps[2].Virtual[i].Virtual.ID += 1000
			}
		},
		"a few virtual threads": func(p *patient) { p.virtualWait(5, virtually(inAcquire)...) },
		"virtual threads that sleep": func(p *patient) {
			p.virtualWait(300, parkVirtual, "java.lang.Thread.sleep", "shop.Poll.run")
		},
		"a server of virtual threads without requests": func(p *patient) {
			p.virtualWait(300, virtually(inRead)...)
			p.Dumps[2].Accepted = 300
		},
		"the same, with as many connections to a database": func(p *patient) {
			p.virtualWait(300, virtually(inRead)...)
			p.Dumps[2].Opened, p.Dumps[2].Accepted = map[netip.AddrPort]int{remote: 300}, 300
		},
	} {
		p := healthy()
		change(p)
		if got := Judge(p.Evidence); len(got.Findings)+len(got.Unknown) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestLongDump: a dump that lasts stops threads for as long. Readings beside it say nothing.
func TestLongDump(t *testing.T) {
	p := healthy()
	p.waitInTask(2, 6, inPut...)
	for i, r := range p.Readings[:4] {
		for j := range r.Threads {
			r.Threads[j].Turns = known(uint64(i))
		}
	}
	for i := range p.Readings[4:] {
		for j := range p.Readings[4+i].Threads {
			p.Readings[4+i].Threads[j].Turns = known(uint64(3))
		}
	}
	if got := Judge(p.Evidence); len(got.Findings) != 0 {
		t.Errorf("they moved: %+v", got)
	}
	p.Dumps[0].Took = 3500 * time.Millisecond
	if got := Judge(p.Evidence); !slices.Equal(ids(got), []profile.FindingID{profile.PoolStuck}) {
		t.Errorf("the dump moved them: %+v", got)
	}
}

// TestStuckBehindStuck: one pool waits for results of another that waits for connections. The second is the cause.
func TestStuckBehindStuck(t *testing.T) {
	p := healthy()
	p.waitInTask(2, 6, inBorrow...)
	p.virtualWait(40, virtually(inGet)...)
	got := Judge(p.Evidence)
	if len(got.Findings) != 1 || !strings.Contains(got.Findings[0].Claim, "getConnection") ||
		!strings.Contains(strings.Join(got.Findings[0].Evidence, "\n"), "also: 40 of 40 virtual threads wait for") {
		t.Errorf("%+v", got)
	}
}

// TestVirtualUnread: virtual threads that could not be read may be stuck.
func TestVirtualUnread(t *testing.T) {
	p := healthy()
	p.Dumps[2].VirtualErr = "a list of threads: moved"
	got := Judge(p.Evidence)
	if len(got.Findings) > 0 || len(got.Unknown) != 1 || got.Unknown[0].ID != profile.PoolStuck {
		t.Errorf("%+v", got)
	}
}

// TestVirtualMayHaveMoved: virtual threads wait for the same in both dumps while their carriers run others. Whether
// they stand still is not known, unless another thread works for them.
func TestVirtualMayHaveMoved(t *testing.T) {
	for name, c := range map[string]struct {
		frames []string
		works  float64 // CPUs that another thread uses
		gone   int     // so many had their permit before the last dump, and the others stand in the same frames
		want   string
	}{
		"for permits, which some got": {inAcquire, 0, 20, "280 of 280 virtual threads wait for a permit of a Semaphore in " +
			"the first and the last dump; carriers ran other virtual threads, so whether these have moved is not known"},
		"for permits": {inAcquire, 0, 0, "300 of 300 virtual threads wait for a permit of a Semaphore in the first and the " +
			"last dump; carriers ran other virtual threads, so whether these have moved is not known"},
		"for results that a thread computes": {inGet, 0.5, 0, ""},
		"for work": {[]string{park, "java.util.concurrent.LinkedBlockingQueue.take", "shop.Consumer.run"}, 0,
			0, ""},
	} {
		p := healthy()
		p.virtualWait(300, virtually(c.frames)...)
		if last := &p.Dumps[len(p.Dumps)-1]; c.gone > 0 {
			last.Virtual = last.Virtual[c.gone:]
			for i := range last.Virtual {
				last.Virtual[i].FrameSum = p.Dumps[0].Virtual[0].FrameSum
			}
		}
		for i, r := range p.Readings {
			r.Threads[len(r.Threads)-1].Turns = known(uint64(i)) // their carrier
		}
		if c.works > 0 {
			p.Rates.Threads[0].CPU = known(c.works)
		}
		got := Judge(p.Evidence)
		var why string
		for _, u := range got.Unknown {
			why += u.Why
		}
		if len(got.Findings) > 0 || why != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestStuckPoolObjects: what the JVM's objects say of a stuck pool, and of the connections that it waits for.
func TestStuckPoolObjects(t *testing.T) {
	hikari := []string{park, "java.util.concurrent.SynchronousQueue.poll",
		"com.zaxxer.hikari.pool.HikariPool.getConnection", "shop.Cart.pay"}
	uses := []string{"sun.nio.ch.SocketDispatcher.read0", "java.net.Socket$SocketInputStream.read",
		"org.postgresql.core.PGStream.receive", "com.zaxxer.hikari.pool.ProxyStatement.execute", "shop.Stock.ask"}
	p := healthy()
	p.waitInTask(2, 5, hikari...)
	p.waitInTask(6, 6, uses...)
	for i := range p.Dumps {
		p.Dumps[i].Remotes = map[int]Remote{6: {remote, "ESTABLISHED"}}
		p.Dumps[i].Pools = &profile.Pools{Executors: []profile.Executor{{Threads: []int{2, 3, 4, 5, 6},
			Queued: known(int64(1400 + i)), Running: known(int64(5)), Done: known(int64(70 + i))}},
			Connections: []profile.Connections{{Name: "HikariPool-1", All: 3, Most: known(int64(3)), Waiting: known(int64(4)),
				Lent: []int64{7, 8, int64(20 + i)}}}}
	}
	got := Judge(p.Evidence)
	if len(got.Findings) == 0 || got.Findings[0].ID != profile.PoolStuck {
		t.Fatalf("%+v", got)
	}
	f := got.Findings[0]
	text := f.Claim + "\n" + strings.Join(f.Evidence, "\n")
	for _, want := range []string{
		"4 of 5 threads pool-1-thread-* wait for a connection of HikariPool-1 (3 of 3 are out), for at least 10 s",
		"pool-1-thread-*: 5 of 5 busy, 1402 queued; 2 begun in 10 s",
		"HikariPool-1: 3 of 3 connections out, 4 wait for one; 2 did not come back in 10 s",
		"threads that have one of its connections: 1: waits for 10.0.0.7:5432 in shop.Stock.ask",
		"lent to threads that are not known: 2",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
