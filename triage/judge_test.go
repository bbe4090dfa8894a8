package triage

import (
	"slices"
	"strings"
	"testing"
	"time"

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
	profile.StandsStill: func(p *patient) { p.Stopped = true },
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
	profile.CompilerBehind: func(p *patient) {
		for i, r := range p.Readings {
			r.JVM.Code.Queues = queues(0, 300+20*i)
		}
		for _, m := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			p.interpret(2, 20, "shop.Rules."+m)
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

// TestEachRuleJudges: each rule is of a finding that is asked for, and the other way round.
func TestEachRuleJudges(t *testing.T) {
	if len(rules) != len(profile.FindingIDs) {
		t.Errorf("%d rules, %d findings", len(rules), len(profile.FindingIDs))
	}
	for _, id := range profile.FindingIDs {
		if rules[id] == nil {
			t.Errorf("no rule for %s", id)
		}
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
