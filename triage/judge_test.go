package triage

import (
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/process/maybe"
	"goprof/profile"
	"goprof/triage/vitals"
)

const condition = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject"

// diseases change a healthy patient. Judge must find each disease, and nothing else.
var diseases = map[profile.FindingID]func(*patient){
	profile.CPUHot: func(p *patient) {
		p.burn(2, 950, "", "shop.Table.lookUp", "shop.Worker.run")
		p.Rates.CPU = known(1.0)
		p.Rates.Threads[1].CPU = known(0.98)
	},
	profile.GCBusy: func(p *patient) {
		p.burn(1, 300, "", "shop.Cart.a", "shop.Main.main")
		p.cpu.AddTimed(label(20), stack(profile.Native, "G1ParScanThreadState::copy_to_survivor_space"), 400, 4*time.Second)
		p.Rates.CPU = known(0.8)
	},
	profile.HeapFull: func(p *patient) {
		for _, r := range p.Readings {
			r.JVM.GC.Heap = pool(500*mib, 512*mib)
			r.JVM.GC.OldAfter = known(uint64(490 * mib))
		}
		p.Rates.Collectors = append(p.Rates.Collectors, vitals.CollectorRate{Name: "G1 full collection pauses",
			Kind: vitals.FullCollections, Count: 12, Time: time.Second, Share: 0.1})
	},
	profile.Deadlocked: func(p *patient) {
		for i := range p.Dumps {
			wait(&p.Dumps[i].Threads[1], 0x10, 3)
			wait(&p.Dumps[i].Threads[2], 0x20, 2)
			wait(&p.Dumps[i].Threads[3], 0x20, 2) // these wait behind them
		}
	},
	profile.LockContention: func(p *patient) {
		for tid := 2; tid <= 5; tid++ {
			p.rest(tid, 900, "blocked: shop.Ledger", "shop.Ledger.book", "shop.Worker.run")
		}
		for i := range p.Dumps {
			for j := 1; j < 5; j++ {
				wait(&p.Dumps[i].Threads[j], 0x10, 1)
			}
		}
	},
	profile.WaitingRemote: func(p *patient) {
		for tid := 2; tid <= 6; tid++ {
			p.rest(tid, 2000, "socket: receive", "sun.nio.ch.Net.poll", "shop.Stock.ask")
			for i := range p.Dumps {
				p.Dumps[i].Remotes[tid] = Remote{remote, "ESTABLISHED"}
			}
		}
	},
	profile.PoolStuck: func(p *patient) { p.waitInTask(2, 6, inPut...) },
	profile.NativeGrowth: func(p *patient) {
		p.grow(profile.MallocMemoryPart, 60*mib, 60*mib, 60*mib)
	},
	profile.DirectFull: func(p *patient) {
		for _, m := range p.Memory {
			m.Direct.Reserved = 95 * mib
		}
	},
	profile.MallocKept: func(p *patient) {
		p.Memory[3].Malloc = profile.MallocMemory{Arenas: 40, InUse: 400 * mib, Looked: 390 * mib, Free: 300 * mib}
	},
	profile.MemoryLimit: func(p *patient) {
		for _, r := range p.Readings {
			r.Cgroup.Memory, r.Cgroup.Kills = pool(995*mib, 1000*mib), known(uint64(1))
			r.Cgroup.Cache = known(uint64(5 * mib))
		}
	},
	profile.CPUThrottled: func(p *patient) {
		p.Rates.Throttled = known(uint64(90))
		p.Rates.WaitedCPU, p.Rates.CPU, p.Rates.Busy = known(3.0), known(0.2), known(0.95)
	},
	profile.CPUShort: func(p *patient) {
		p.Rates.WaitedCPU, p.Rates.CPU, p.Rates.Busy = known(1.0), known(0.2), known(1.0)
	},
	profile.Swapping: func(p *patient) {
		p.Rates.MajorFaults = known(80.0)
		p.Readings[seconds10].Process.Swap = known(uint64(300 * mib))
	},
	profile.CodeCacheFull: func(p *patient) {
		c := &p.Readings[seconds10].JVM.Code
		c.Compiling, c.Total = known(false), pool(220*mib, 240*mib)
	},
	profile.SafepointStall: func(p *patient) {
		for i := 3; i < 7; i++ {
			p.Readings[i].JVM.Safepoints = vitals.Safepoints{Count: known(uint64(3)), State: known(vitals.BeginsSafepoint),
				Operation: known("G1CollectForAllocation"), HoldOuts: []int{2}}
		}
	},
	profile.Exceptions: func(p *patient) {
		p.burn(2, 80, "", "java.lang.Throwable.fillInStackTrace", "java.lang.Throwable.<init>", "shop.NoSuchItem.<init>",
			"shop.Stock.find")
		for _, m := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			p.burn(2, 20, "", "shop.Stock."+m)
		}
	},
	profile.ClassLoading: func(p *patient) {
		for i, r := range p.Readings {
			r.JVM.Classes.Loaded = known(uint64(9000 + 100*i))
		}
	},
	profile.ThreadLeak: func(p *patient) {
		for i, r := range p.Readings {
			for n := range 20 * i {
				r.Threads = append(r.Threads, vitals.Thread{TID: 1000 + n, Name: "leak", Role: vitals.Application,
					CPU: known(time.Millisecond)})
			}
		}
	},
	profile.FDLimit: func(p *patient) { p.Readings[seconds10].Process.FDs = known(uint64(1000)) },
	profile.FinalizerBehind: func(p *patient) {
		for i, r := range p.Readings {
			r.JVM.References.Finalizers = known(uint64(50_000 + 100*i))
		}
	},
	profile.Pinned: func(p *patient) {
		for _, r := range p.Readings {
			r.JVM.Virtual = vitals.Virtual{Mounted: known(5), Pinned: []vitals.PinnedThread{{Carrier: 2, ID: 31},
				{Carrier: 3, ID: 32},
				{Carrier: 4, ID: 33}, {Carrier: 5, ID: 34}}}
		}
	},
}

func wait(t *profile.ThreadDump, lock uint64, owner int) {
	t.WaitsFor = &profile.WantedLock{Lock: profile.Lock{Kind: profile.Monitor, Class: "shop.Ledger", ID: lock},
		How: profile.ToEnter, Owner: profile.ThreadRef{TID: owner, Name: name(owner)}}
}

func ids(t profile.Triage) (found []profile.FindingID) {
	for _, f := range t.Findings {
		found = append(found, f.ID)
	}
	return found
}

func TestHealthy(t *testing.T) {
	got := Judge(healthy().Evidence)
	if len(got.Findings)+len(got.Unknown)+len(got.Notes) > 0 {
		t.Errorf("a healthy JVM: %+v", got)
	}
}

// TestOutdatedIsNoDisease: how old the JDK is stands in a note, and changes nothing else.
func TestOutdatedIsNoDisease(t *testing.T) {
	p := healthy()
	p.Outdated = "JDK 17.0.9 is old"
	if got := Judge(p.Evidence); len(got.Findings)+len(got.Unknown) > 0 || !slices.Equal(got.Notes, []string{p.Outdated}) {
		t.Errorf("%+v", got)
	}
}

func TestEachDisease(t *testing.T) {
	for _, id := range profile.FindingIDs {
		t.Run(string(id), func(t *testing.T) {
			p := healthy()
			diseases[id](p)
			got := Judge(p.Evidence)
			if !slices.Equal(ids(got), []profile.FindingID{id}) {
				t.Fatalf("found %v: %+v", ids(got), got)
			}
			f := got.Findings[0]
			if f.Claim == "" || !strings.HasSuffix(f.Claim, ".") || f.Next == "" || len(f.Evidence) == 0 || f.Severity == "" {
				t.Errorf("%+v", f)
			}
			t.Log(f.Claim)
		})
	}
}

// TestNothingKnown: nothing could be read of a JVM. Judge finds no disease in it, and each rule says that it does
// not know.
func TestNothingKnown(t *testing.T) {
	got := Judge(&Evidence{PID: 1})
	if len(got.Findings) > 0 {
		t.Errorf("%+v", got.Findings)
	}
	var told []profile.FindingID
	for _, u := range got.Unknown {
		told = append(told, u.ID)
	}
	for _, id := range profile.FindingIDs {
		if id != profile.Pinned && !slices.Contains(told, id) { // most JVMs have no virtual threads
			t.Errorf("nothing is said of %s", id)
		}
	}
}

// TestMoments: a state that lasts only a part of the time, or that only looks like a disease, is none.
func TestMoments(t *testing.T) {
	for name, change := range map[string]func(*patient){
		"two dumps show different rings": func(p *patient) {
			wait(&p.Dumps[0].Threads[1], 0x10, 3)
			wait(&p.Dumps[0].Threads[2], 0x20, 2)
		},
		"a chain without a ring": func(p *patient) {
			for i := range p.Dumps {
				wait(&p.Dumps[i].Threads[1], 0x10, 3)
				wait(&p.Dumps[i].Threads[2], 0x20, 4)
			}
		},
		"a heap that is full once": func(p *patient) {
			p.Readings[4].JVM.GC.Heap = pool(511*mib, 512*mib)
		},
		"a full heap that is asked to collect once": func(p *patient) {
			diseases[profile.HeapFull](p)
			p.Rates.Collectors[1].Count = 1
		},
		"an old generation that fills up with garbage until it is collected": func(p *patient) {
			for _, r := range p.Readings {
				r.JVM.GC.OldAfter = known(uint64(500 * mib))
			}
			p.Rates.Collectors[0].Count = 30
		},
		"one thread waits for a lock": func(p *patient) {
			p.rest(2, 900, "blocked: shop.Ledger", "shop.Ledger.book")
		},
		"threads of a pool wait for work": func(p *patient) {
			for tid := 2; tid <= 6; tid++ {
				p.rest(tid, 5000, "parked: "+condition, "java.util.concurrent.locks.ReentrantLock.lock", condition+".await")
			}
		},
		"two consumers of messages": func(p *patient) {
			diseases[profile.WaitingRemote](p)
			for i := range p.Dumps {
				p.Dumps[i].Threads = p.Dumps[i].Threads[:3]
			}
		},
		"a pool is filled at once": func(p *patient) {
			for _, r := range p.Readings[2:] {
				for n := range 100 {
					r.Threads = append(r.Threads, vitals.Thread{TID: 1000 + n, Name: "worker", Role: vitals.Application,
						CPU: known(time.Millisecond)})
				}
			}
		},
		"a pool is filled by load": func(p *patient) {
			for i, r := range p.Readings {
				for n := range 20 * i {
					r.Threads = append(r.Threads, vitals.Thread{TID: 1000 + n, Name: "worker", Role: vitals.Application,
						CPU: known(time.Duration(i) * time.Millisecond)})
				}
			}
		},
		"the finalizer catches up": func(p *patient) {
			for i, r := range p.Readings {
				r.JVM.References.Finalizers = known(uint64(50_000 - 4000*i))
			}
		},
		"safepoints, each new": func(p *patient) {
			for i, r := range p.Readings {
				r.JVM.Safepoints = vitals.Safepoints{Count: known(uint64(i)), State: known(vitals.BeginsSafepoint),
					HoldOuts: []int{2}}
			}
		},
		"safepoints that cannot be told from each other": func(p *patient) {
			for _, r := range p.Readings {
				r.JVM.Safepoints = vitals.Safepoints{State: known(vitals.BeginsSafepoint), HoldOuts: []int{2}}
			}
		},
		"one pinned of the few carriers that were needed so far": func(p *patient) {
			for _, r := range p.Readings {
				r.Process.CPUsAllowed, r.Cgroup.CPUs = known(uint64(8)), known(8.0)
				r.JVM.Virtual = vitals.Virtual{Mounted: known(1), Pinned: []vitals.PinnedThread{{Carrier: 1, ID: 31}}}
			}
		},
		"one of two carriers pinned": func(p *patient) {
			for _, r := range p.Readings {
				r.JVM.Virtual = vitals.Virtual{Mounted: known(2), Parallelism: known(2),
					Pinned: []vitals.PinnedThread{{Carrier: 1, ID: 31}}}
			}
		},
		"a wait that could not be confirmed in one dump": func(p *patient) {
			p.Dumps[1].Threads[2].Unconfirmed = true
		},
		"compilers off by a flag": func(p *patient) {
			p.Readings[seconds10].JVM.Code.Compiling = known(false)
		},
		"no limit of the control group": func(p *patient) {
			p.Rates.Periods, p.Rates.Throttled = maybe.Value[uint64]{}, maybe.Value[uint64]{}
			for _, r := range p.Readings {
				r.Cgroup = vitals.Cgroup{Limited: known(false), MemoryLimited: known(false)}
			}
		},
		"a batch in few methods": func(p *patient) {
			for i := range 4 {
				p.burn(2, 250, "", "shop.Job.step"+string(rune('A'+i)), "shop.Job.run")
			}
			p.Rates.CPU = known(1.0)
			p.Rates.Threads[1].CPU = known(0.98)
		},
		"a batch of one method in main": func(p *patient) {
			p.cpu = profile.New()
			p.CPU, p.cpu.Meta.Duration = p.cpu, seconds10*time.Second
			p.burn(1, 950, "", "shop.Matrix.multiply", "shop.Main.main")
			p.Rates.CPU = known(1.0)
			p.Rates.Threads[0].CPU = known(0.98)
		},
		"a heap that reaches its pages for the first time": func(p *patient) {
			p.grow(profile.HeapPartOfMemory, 60*mib, 60*mib, 60*mib)
		},
		"one large buffer": func(p *patient) {
			p.grow(profile.MallocMemoryPart, 0, 400*mib, 0)
		},
		"direct memory that was full once": func(p *patient) { p.Memory[2].Direct.Reserved = 100 * mib },
		"no direct memory, and no known limit": func(p *patient) {
			for _, m := range p.Memory {
				m.Direct = &profile.DirectMemory{}
			}
		},
		"a control group whose memory is a cache of files": func(p *patient) {
			for _, r := range p.Readings {
				r.Cgroup.Memory = pool(1000*mib, 1000*mib)
			}
		},
		"a control group without a limit": func(p *patient) {
			for _, r := range p.Readings {
				r.Cgroup.MemoryLimited, r.Cgroup.Memory.Max = known(false), maybe.Value[uint64]{}
			}
		},
		"malloc that keeps a little": func(p *patient) {
			p.Memory[3].Resident = 8000 * mib
			p.Memory[3].Malloc.InUse, p.Memory[3].Malloc.Looked, p.Memory[3].Malloc.Free = 900*mib, 900*mib, 300*mib
		},
		"code that is compiled": func(p *patient) {
			p.grow(profile.CodeCache, 30*mib, 30*mib, 30*mib)
		},
		"busy with many things": func(p *patient) {
			for i := range 30 {
				p.burn(2, 30, "", "shop.Job.step"+string(rune('A'+i)), "shop.Worker.run")
			}
			p.Rates.CPU = known(1.0)
			p.Rates.Threads[1].CPU = known(0.98)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := healthy()
			change(p)
			if got := Judge(p.Evidence); len(got.Findings)+len(got.Unknown) > 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestWhyCollected: gc-busy says why the JVM collected, and what mends that.
func TestWhyCollected(t *testing.T) {
	gc := []string{"java.lang.Runtime.gc", "java.lang.System.gc"}
	for name, c := range map[string]struct {
		cause    string
		stack    []string // leaf first
		evidence string
		cure     string
	}{
		"asked": {"System.gc()", append(gc, "shop.Cart.tidyUp"), "it is asked for in shop.Cart.tidyUp",
			"DisableExplicitGC"},
		"direct memory": {"System.gc()", append(gc, "java.nio.Bits.reserveMemory", "java.nio.DirectByteBuffer.<init>",
			"shop.File.read"), "direct memory", "MaxDirectMemorySize"},
		"metaspace":  {"Metadata GC Threshold", nil, "the metadata of classes grew", "MetaspaceSize"},
		"humongous":  {"G1 Humongous Allocation", nil, "half a region", "G1HeapRegionSize"},
		"full":       {"Allocation Failure", nil, "by the JVM's own word: Allocation Failure", ""},
		"under way":  {"", nil, "the program asks for it", "DisableExplicitGC"},
		"not known ": {"No GC", nil, "", ""},
	} {
		p := healthy()
		diseases[profile.GCBusy](p)
		for i, r := range p.Readings {
			r.JVM.GC.Collections, r.JVM.GC.LastCause = known(uint64(i)), known(c.cause)
			if r.JVM.GC.Cause = known("No GC"); c.cause == "" {
				r.JVM.GC.Cause, r.JVM.GC.LastCause = known("System.gc()"), known("No GC")
			}
		}
		if c.stack != nil {
			p.rest(1, 50, "in VM", c.stack...)
		}
		f := Judge(p.Evidence).Findings[0]
		if !strings.Contains(strings.Join(f.Evidence, "\n"), c.evidence) || !strings.Contains(f.Next, c.cure) ||
			c.cure == "" && strings.Contains(f.Next, "cure") {
			t.Errorf("%s: %q, %s", name, f.Evidence, f.Next)
		}
	}
}

// TestAskedForCollections: a program that asks for a collection each second is told so, however short they are. One
// that asks for it now and then is not, and neither is one whose heap fills up as often.
func TestAskedForCollections(t *testing.T) {
	for name, c := range map[string]struct {
		cause string
		every int // readings
		found bool
	}{
		"each second":    {"System.gc()", 1, true},
		"a tool":         {"Heap Inspection Initiated GC", 1, true},
		"now and then":   {"System.gc()", 5, false},
		"the heap fills": {"Allocation Failure", 1, false},
		"large objects":  {"G1 Humongous Allocation", 1, false},
	} {
		p := healthy()
		for i, r := range p.Readings {
			r.JVM.GC.Collections, r.JVM.GC.LastCause = known(uint64(i/c.every)), known(c.cause)
			r.JVM.GC.Cause = known("No GC")
		}
		got := Judge(p.Evidence)
		if found := slices.Equal(ids(got), []profile.FindingID{profile.GCBusy}); found != c.found {
			t.Errorf("%s: %+v", name, got)
		} else if c.found && !strings.HasPrefix(got.Findings[0].Claim, "Collections of the heap are asked for all the time") {
			t.Errorf("%s: %s", name, got.Findings[0].Claim)
		}
	}
}

// TestCompilersGaveRoomBack: compilers that were stopped give room back. The JVM has counted that there was no room.
func TestCompilersGaveRoomBack(t *testing.T) {
	p := healthy()
	for _, r := range p.Readings {
		r.JVM.Code.Compiling = known(false)
		r.JVM.Code.Heaps[0].Refused = known(uint64(1))
	}
	if got := Judge(p.Evidence); !slices.Equal(ids(got), []profile.FindingID{profile.CodeCacheFull}) {
		t.Errorf("%+v", got)
	}
}

// TestCompilersGivenUp: JDK 8 does not count that it found no room. Compilers that are off for good leave much room.
func TestCompilersGivenUp(t *testing.T) {
	p := healthy()
	for _, r := range p.Readings {
		r.JVM.Code.Compiling, r.JVM.Code.GaveUp = known(false), known(true)
	}
	if got := Judge(p.Evidence); !slices.Equal(ids(got), []profile.FindingID{profile.CodeCacheFull}) {
		t.Errorf("%+v", got)
	}
}

// TestUnconfirmedWaits: a thread waits in each dump, and it is not known for whom. It may be in a deadlock.
func TestUnconfirmedWaits(t *testing.T) {
	p := healthy()
	for i := range p.Dumps {
		p.Dumps[i].Threads[2].Unconfirmed = true
	}
	got := Judge(p.Evidence)
	if len(got.Findings) != 0 || len(got.Unknown) != 1 || got.Unknown[0].ID != profile.Deadlocked {
		t.Errorf("%+v", got)
	}
}

// TestFewCarriers: the number of carriers is the parallelism that was asked for, not the number of CPUs.
func TestFewCarriers(t *testing.T) {
	p := healthy()
	for _, r := range p.Readings {
		r.Process.CPUsAllowed = known(uint64(64))
		r.JVM.Virtual = vitals.Virtual{Mounted: known(5), Parallelism: known(2),
			Pinned: []vitals.PinnedThread{{Carrier: 2, ID: 31}, {Carrier: 3, ID: 32}, {Carrier: 4, ID: 33}}}
	}
	if got := Judge(p.Evidence); !slices.Equal(ids(got), []profile.FindingID{profile.Pinned}) {
		t.Errorf("%+v", got)
	}
}

// TestRolesAtTheEnd: if the last reading does not know the role of a thread, earlier readings tell it.
func TestRolesAtTheEnd(t *testing.T) {
	for _, role := range []vitals.Role{"", vitals.Foreign} {
		p := healthy()
		diseases[profile.CPUHot](p)
		for i := range p.Readings[seconds10].Threads {
			p.Readings[seconds10].Threads[i].Role = role
		}
		if got := Judge(p.Evidence); !slices.Contains(ids(got), profile.CPUHot) {
			t.Errorf("%q: %+v", role, got)
		}
	}
}

// TestCaught: a thread that never rests and is in one place is likely caught in a loop. A program that computes gets a
// note.
func TestCaught(t *testing.T) {
	busy := func(frames ...[]string) *patient {
		p := healthy()
		for _, f := range frames {
			p.burn(2, 400, "", f...)
		}
		p.Rates.CPU, p.Rates.Threads[1].CPU = known(1.0), known(0.98)
		return p
	}
	get := []string{"java.util.HashMap.getNode", "java.util.HashMap.get", "shop.Cart.find", "shop.Worker.run"}
	for name, c := range map[string]struct {
		p           *patient
		claim, note string
	}{
		"a map that is a ring": {busy(get, append([]string{"java.lang.String.equals"}, get...)),
			"\"pool-1-thread-2\" tid=2 never rests and is likely caught in a loop: 100 % of its samples are in " +
				"java.util.HashMap.get.", ""},
		"one place": {busy(get[2:]), "\"pool-1-thread-2\" tid=2 never rests and is likely caught in a loop: 100 % of its " +
			"samples are in shop.Cart.find.", ""},
		"a program that computes": {busy([]string{"shop.Job.a", "shop.Job.run"}, []string{"shop.Job.b", "shop.Job.run"}),
			"", "the program computes: it uses 0.8 CPUs, and 1 thread never at rest; 95 % of that in 2 methods, most in " +
				"shop.Job.a"},
	} {
		got := Judge(c.p.Evidence)
		claim, note := "", strings.Join(got.Notes, "\n")
		if len(got.Findings) > 0 {
			claim = got.Findings[0].Claim
		}
		if claim != c.claim || note != c.note {
			t.Errorf("%s: %q, note %q", name, claim, note)
		}
	}
}

// TestMemoryUnknown: what is not known of memory is not told as healthy, and the reason is the true one.
func TestMemoryUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		id     profile.FindingID
		why    string
		change func(*patient)
	}{
		"direct buffers once": {profile.DirectFull, "could not be read", func(p *patient) {
			diseases[profile.DirectFull](p)
			p.Memory[1].Direct = nil
		}},
		"the limit of direct buffers": {profile.DirectFull, "MaxDirectMemorySize", func(p *patient) {
			for _, m := range p.Memory {
				m.Direct.Max = 0
			}
		}},
		"growth of three readings": {profile.NativeGrowth, "read 3 times", func(p *patient) { p.Memory = p.Memory[1:] }},
	} {
		p := healthy()
		c.change(p)
		got := Judge(p.Evidence)
		if len(got.Findings) > 0 || len(got.Unknown) != 1 || got.Unknown[0].ID != c.id ||
			!strings.Contains(got.Unknown[0].Why, c.why) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestRoomUnknown: when the control group is full is not foretold where nobody knows what of it is a cache.
func TestRoomUnknown(t *testing.T) {
	p := healthy()
	diseases[profile.NativeGrowth](p)
	told := func() bool {
		return strings.Contains(strings.Join(Judge(p.Evidence).Findings[0].Evidence, "\n"), "full in")
	}
	if !told() {
		t.Error("when the group is full is not told")
	}
	if p.Readings[seconds10].Cgroup.Cache = (maybe.Value[uint64]{}); told() {
		t.Error("how much is a cache is not known, and when the group is full is told")
	}
}

// TestYoungGrowth: memory of a JVM that starts grows.
func TestYoungGrowth(t *testing.T) {
	p := healthy()
	diseases[profile.NativeGrowth](p)
	p.Readings[seconds10].JVM.Uptime = known(20 * time.Second)
	got := Judge(p.Evidence)
	if len(got.Findings) > 0 || len(got.Unknown) != 1 || got.Unknown[0].ID != profile.NativeGrowth {
		t.Errorf("%+v", got)
	}
}

// TestYoung: loading classes is no disease of a JVM that starts. The result says that this cannot be judged yet.
func TestYoung(t *testing.T) {
	p := healthy()
	diseases[profile.ClassLoading](p)
	p.Readings[seconds10].JVM.Uptime = known(20 * time.Second)
	got := Judge(p.Evidence)
	if len(got.Findings) > 0 || len(got.Unknown) != 1 || got.Unknown[0].ID != profile.ClassLoading {
		t.Errorf("%+v", got)
	}
}

func TestStopped(t *testing.T) {
	p := healthy()
	p.Stopped = true
	diseases[profile.Deadlocked](p)
	got := Judge(p.Evidence)
	if !slices.Equal(ids(got), []profile.FindingID{profile.Deadlocked}) || len(got.Notes) != 1 {
		t.Errorf("%+v", got)
	}
	if len(got.Unknown) != len(profile.FindingIDs)-len(judgesStill) {
		t.Errorf("of a process that stands still not known are %+v", got.Unknown)
	}
	p.Frozen, p.Thaw = "frozen by its cgroup /a", "echo 0 >/a/cgroup.freeze"
	if got = Judge(p.Evidence); !strings.Contains(got.Notes[0], p.Frozen) || !strings.Contains(got.Notes[0], p.Thaw) {
		t.Errorf("%q", got.Notes)
	}
}

// TestDeadlockUnknown: a deadlock that nobody could have seen is not ruled out.
func TestDeadlockUnknown(t *testing.T) {
	for name, change := range map[string]func(*Dump){
		"an owner is not known": func(d *Dump) {
			wait(&d.Threads[1], 0x10, 0)
			d.Threads[1].WaitsFor.Owner = profile.ThreadRef{}
		},
		"virtual threads are not known": func(d *Dump) { d.Waits.Left = 3 },
		"locks are not known":           func(d *Dump) { d.Locks = false },
	} {
		p := healthy()
		for i := range p.Dumps {
			change(&p.Dumps[i])
		}
		got := Judge(p.Evidence)
		if len(got.Findings) > 0 || len(got.Unknown) != 1 || got.Unknown[0].ID != profile.Deadlocked {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestOrder: certain statements of the JVM itself come before shares of time.
func TestOrder(t *testing.T) {
	p := healthy()
	for _, id := range []profile.FindingID{profile.CPUHot, profile.LockContention, profile.Deadlocked, profile.FDLimit} {
		diseases[id](p)
	}
	got := ids(Judge(p.Evidence))
	if len(got) < 3 || got[0] != profile.Deadlocked || got[1] != profile.FDLimit || got[len(got)-1] != profile.CPUHot {
		t.Error(got)
	}
}
