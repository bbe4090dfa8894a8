package triage

import (
	"fmt"
	"net/netip"
	"time"

	"goprof/process/maybe"
	"goprof/process/procfs"
	"goprof/profile"
	"goprof/triage/vitals"
)

// patient is made-up evidence: ten seconds of a healthy JVM with a pool of six threads. Each test changes it.
type patient struct {
	*Evidence
	cpu, wall *profile.Profile
}

const seconds10 = 10

func healthy() *patient {
	e := &Evidence{PID: 4711}
	p := &patient{Evidence: e, cpu: profile.New(), wall: profile.New()}
	e.CPU, e.Wall = p.cpu, p.wall
	p.cpu.Meta.Duration, p.wall.Meta.Duration = seconds10*time.Second, seconds10*time.Second
	began := time.Unix(1_700_000_000, 0)
	for i := range seconds10 + 1 {
		e.Readings = append(e.Readings, reading(began.Add(time.Duration(i)*time.Second), i))
	}
	for i := range 4 {
		m := &profile.Memory{At: began.Add(time.Duration(3*i) * time.Second), Resident: 600 * mib,
			Direct: &profile.DirectMemory{Reserved: 30 * mib, Count: 30, Max: 100 * mib},
			Malloc: profile.MallocMemory{Arenas: 8, InUse: 80 * mib, Looked: 80 * mib, Free: 20 * mib}}
		for _, part := range []string{profile.HeapPartOfMemory, profile.MallocMemoryPart, profile.CodeCache} {
			m.Parts = append(m.Parts, profile.MemoryPart{Name: part, Resident: 150 * mib, Anonymous: 150 * mib})
		}
		e.Memory = append(e.Memory, m)
	}
	e.Rates = healthyRates()
	for i := range 3 {
		e.Dumps = append(e.Dumps, Dump{At: began.Add(time.Duration(5*i) * time.Second), Threads: dumped(), Locks: true,
			Remotes: map[int]Remote{}})
	}
	for i := range 20 {
		p.burn(1, 2, "main", fmt.Sprintf("shop.Cart.step%d", i), "shop.Main.main")
	}
	for tid := 1; tid <= 6; tid++ {
		p.rest(tid, 200, "parked: java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject",
			"jdk.internal.misc.Unsafe.park", "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await",
			"java.util.concurrent.LinkedBlockingQueue.take")
	}
	return p
}

func name(tid int) string {
	switch tid {
	case 1:
		return "main"
	case 20:
		return "GC Thread#0"
	case 21:
		return "VM Thread"
	}
	return fmt.Sprintf("pool-1-thread-%d", tid)
}

// grow has a part of memory grow by so much from one of the four readings to the next.
func (p *patient) grow(part string, by ...uint64) {
	sum := uint64(0)
	for i, m := range p.Memory {
		if i > 0 {
			sum += by[i-1]
		}
		m.Resident += sum
		m.Part(part).Resident += sum
		m.Part(part).Anonymous += sum
	}
}

// burn adds samples of a thread, 10 ms of CPU time each. Frames are leaf first.
func (p *patient) burn(tid int, n int64, _ string, frames ...string) {
	p.cpu.AddTimed(label(tid), stack(profile.C2, frames...), n, time.Duration(n)*10*time.Millisecond)
}

// interpret adds samples of a thread that runs in the interpreter.
func (p *patient) interpret(tid int, n int64, frames ...string) {
	p.cpu.AddTimed(label(tid), stack(profile.Interpreted, frames...), n, time.Duration(n)*10*time.Millisecond)
}

// queues are those of both compilers.
func queues(c1, c2 int) maybe.Value[[]vitals.CompileQueue] {
	return known([]vitals.CompileQueue{{Compiler: "C1", Length: c1}, {Compiler: "C2", Length: c2}})
}

// rest adds looks at a thread in the given state.
func (p *patient) rest(tid int, n int64, state string, frames ...string) {
	s := stack(profile.C2, frames...)
	leaf := profile.Frame{Func: &profile.Func{Name: "[" + state + "]"}, Kind: profile.StateFrame}
	s.Frames = append([]profile.Frame{leaf}, s.Frames...)
	p.wall.AddTimed(label(tid), s, n, time.Duration(n)*50*time.Millisecond)
}

// waitInTask has threads stand in one wait for all of the time, in all dumps. Frames are leaf first.
func (p *patient) waitInTask(first, last int, frames ...string) {
	for tid := first; tid <= last; tid++ {
		p.rest(tid, 10_000, "parked: shop.Thing", frames...)
		for i := range p.Dumps {
			p.Dumps[i].Threads[tid-1].Stack = *stack(profile.C2, frames...)
		}
	}
	for _, r := range p.Readings {
		for i := range r.Threads {
			r.Threads[i].Turns = known(uint64(7))
		}
	}
}

// onlyThreads leaves so many threads in the dumps.
func (p *patient) onlyThreads(n int) {
	for i := range p.Dumps {
		p.Dumps[i].Threads = p.Dumps[i].Threads[:n]
	}
}

// virtualWait has virtual threads stand in one wait in the first dump and in the last.
func (p *patient) virtualWait(threads int, frames ...string) {
	for _, i := range []int{0, len(p.Dumps) - 1} {
		for id := range threads {
			p.Dumps[i].Virtual = append(p.Dumps[i].Virtual, profile.ThreadDump{State: "parked",
				Virtual: &profile.VirtualThread{ID: uint64(100 + id)}, Stack: *stack(profile.C2, frames...),
				FrameSum: uint64(1 + i)})
		}
	}
	last := p.Dumps[len(p.Dumps)-1]
	p.Earlier = FrameSums{At: last.At.Add(-time.Second), Was: map[uint64]uint64{}}
	for _, t := range last.Virtual {
		p.Earlier.Was[t.Virtual.ID] = t.FrameSum
	}
	for _, r := range p.Readings {
		r.Threads = append(r.Threads, vitals.Thread{TID: 50, Name: "ForkJoinPool-1-worker-1", Role: vitals.Application,
			Turns: known(uint64(9))})
	}
}

var (
	inPut = []string{park, "java.util.concurrent.ArrayBlockingQueue.put", "shop.Producer.run"}
	inGet = []string{park, "java.util.concurrent.FutureTask.get", "shop.Report.make",
		"java.util.concurrent.ThreadPoolExecutor.runWorker"}
	inAcquire = []string{park, "java.util.concurrent.Semaphore.acquire", "shop.Gate.pass"}
	inRead    = []string{"sun.nio.ch.SocketDispatcher.read0", "java.net.Socket$SocketInputStream.read", "shop.Stock.ask"}
	inWaitFor = []string{park, "java.lang.ProcessImpl.waitFor", "shop.Image.convert"}
	inBorrow  = []string{park, "java.util.concurrent.SynchronousQueue.poll", "acme.db.pool.ConnectionPool.getConnection",
		"shop.Cart.pay"}
	inQuery     = []string{park, "acme.db.Statement.execute", "shop.Cart.pay"}
	parkVirtual = "java.lang.VirtualThread.park"
)

const park = "jdk.internal.misc.Unsafe.park"

func label(tid int) string { return fmt.Sprintf("[%s tid=%d]", name(tid), tid) }

func stack(kind profile.Kind, frames ...string) *profile.Stack {
	s := &profile.Stack{}
	for _, f := range frames {
		s.Frames = append(s.Frames, profile.Frame{Func: &profile.Func{Name: f}, Kind: kind, BCI: -1})
	}
	return s
}

func dumped() (threads []profile.ThreadDump) {
	for tid := 1; tid <= 6; tid++ {
		threads = append(threads, profile.ThreadDump{TID: tid, Name: name(tid), Java: true,
			Stack: *stack(profile.C2, "jdk.internal.misc.Unsafe.park", "shop.Worker.run")})
	}
	return threads
}

func known[T any](v T) maybe.Value[T] { return maybe.Known(v) }

func pool(used, most uint64) vitals.Pool { return vitals.Pool{Used: known(used), Max: known(most)} }

const mib = 1 << 20

func reading(at time.Time, i int) *vitals.Reading {
	r := &vitals.Reading{At: at}
	for tid := 1; tid <= 6; tid++ {
		r.Threads = append(r.Threads, vitals.Thread{TID: tid, Name: name(tid), Role: vitals.Application,
			CPU: known(time.Duration(i) * time.Millisecond)})
	}
	r.Threads = append(r.Threads, vitals.Thread{TID: 20, Name: name(20), Role: vitals.Collection},
		vitals.Thread{TID: 21, Name: name(21), Role: vitals.VMInternal})
	v := &r.JVM
	v.Uptime = known(time.Hour)
	v.GC = vitals.GC{Name: "G1", Heap: pool(uint64(100+10*i)*mib, 512*mib), Old: pool(80*mib, 512*mib),
		OldAfter: known(uint64(80 * mib)), Collections: known(uint64(i / 4))}
	v.Safepoints = vitals.Safepoints{Count: known(uint64(i)), State: known(vitals.NoSafepoint)}
	v.Code = vitals.Code{Heaps: []vitals.CodeHeap{{Name: "CodeCache", Pool: pool(20*mib, 240*mib),
		Refused: known(uint64(0))}},
		Total: pool(20*mib, 240*mib), Compiling: known(true)}
	v.Classes = vitals.Classes{Loaded: known(uint64(9000 + i)), Unloaded: known(uint64(0))}
	v.References = vitals.References{Finalizers: known(uint64(0)), Pending: known(uint64(0))}
	v.Threads = vitals.ThreadCounts{Live: known(uint64(6)), Started: known(uint64(10))}
	r.Process = vitals.Process{RSS: known(uint64(600 * mib)), Swap: known(uint64(0)),
		FDs: known(uint64(60)), FDLimit: known(uint64(1024)), Threads: known(uint64(8)), ThreadLimit: known(uint64(30000)),
		CPUsAllowed: known(uint64(2))}
	r.Cgroup = vitals.Cgroup{Limited: known(true), CPUs: known(2.0), Memory: pool(900*mib, 1000*mib),
		Cache: known(uint64(200 * mib)), MemoryLimited: known(true)}
	r.Machine = vitals.Machine{CPUs: known(uint64(2)), Running: known(uint64(1)), CPUTime: known(procfs.CPUTime{})}
	return r
}

func healthyRates() vitals.Rates {
	r := vitals.Rates{Over: seconds10 * time.Second, CPU: known(0.05), WaitedCPU: known(0.001),
		Collections: known(uint64(2)),
		Collectors: []vitals.CollectorRate{{Name: "G1 young collection pauses", Kind: vitals.YoungCollections, Count: 2,
			Time: 20 * time.Millisecond, Share: 0.002}},
		SafepointSyncShare: known(0.001), MajorFaults: known(0.0), Periods: known(uint64(100)), Throttled: known(uint64(1)),
		Busy: known(0.1), Steal: known(0.0)}
	for tid := 1; tid <= 6; tid++ {
		r.Threads = append(r.Threads, vitals.ThreadRate{TID: tid, Name: name(tid), Role: vitals.Application,
			CPU:    known(0.01),
			Waited: known(0.0)})
	}
	return r
}

var remote = netip.MustParseAddrPort("10.0.0.7:5432")
