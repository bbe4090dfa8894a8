package triage

import (
	"slices"
	"strings"
	"testing"

	"goprof/process/maybe"
	"goprof/profile"
)

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
		// Most JVMs have no virtual threads, and whether a process is stopped is known of each.
		if id != profile.Pinned && id != profile.StandsStill && !slices.Contains(told, id) {
			t.Errorf("nothing is said of %s", id)
		}
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

// TestSafepointsWithoutCPU: safepoints begin late because threads have no CPU. No thread is at fault.
func TestSafepointsWithoutCPU(t *testing.T) {
	p := healthy()
	p.Rates.SafepointSyncShare = maybe.Known(0.45)
	if got := Judge(p.Evidence); !slices.Equal(ids(got), []profile.FindingID{profile.SafepointStall}) {
		t.Errorf("with CPUs to spare: %+v", got)
	}
	p.Rates.WaitedCPU, p.Rates.CPU, p.Rates.Busy = maybe.Known(7.0), maybe.Known(0.1), maybe.Known(1.0)
	got := Judge(p.Evidence)
	if !slices.Equal(ids(got), []profile.FindingID{profile.CPUShort}) || !slices.ContainsFunc(got.Unknown,
		func(u profile.Unknown) bool { return u.ID == profile.SafepointStall }) {
		t.Errorf("without a CPU: %+v", got)
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

func TestStopped(t *testing.T) {
	p := healthy()
	p.Stopped = true
	diseases[profile.Deadlocked](p)
	got := Judge(p.Evidence)
	if !slices.Equal(ids(got), []profile.FindingID{profile.Deadlocked, profile.StandsStill}) {
		t.Errorf("%+v", got)
	}
	if len(got.Unknown) != len(profile.FindingIDs)-len(judgesStill) {
		t.Errorf("of a process that stands still not known are %+v", got.Unknown)
	}
	p.Frozen, p.Thaw = "frozen by its cgroup /a", "echo 0 >/a/cgroup.freeze"
	f := &Judge(p.Evidence).Findings[1]
	if !strings.Contains(f.Claim, p.Frozen) || !strings.Contains(f.Next, p.Thaw) {
		t.Errorf("%+v", f)
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
