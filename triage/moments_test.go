package triage

import (
	"testing"
	"time"

	"goprof/process/maybe"
	"goprof/profile"
	"goprof/triage/vitals"
)

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
