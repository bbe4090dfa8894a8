//go:build linux

package session

import (
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/vmstructs"
)

// TestAddressOfEndedThread: a thread has ended, and a thread that is not in the dump is now at the same address.
func TestAddressOfEndedThread(t *testing.T) {
	listed := func(tid int, addr uint64) *listedThread {
		return &listedThread{kernel: process.Thread{TID: tid, NSTID: tid}, java: vmstructs.Thread{Addr: addr, NSTID: tid}}
	}
	s := &Session{dir: &directory{threads: map[int]*listedThread{41: listed(41, 0x1000), 42: listed(42, 0x2000)}}}
	r := lockReader{d: &dumping{Session: s}, tids: map[uint64]int{0x1000: 41, 0x2000: 42}}
	r.forgetNew([]vmstructs.Thread{{Addr: 0x1000, NSTID: 41}, {Addr: 0x2000, NSTID: 43}, {Addr: 0x3000, NSTID: 44}})
	if len(r.tids) != 1 || r.tids[0x1000] != 41 {
		t.Errorf("%v", r.tids)
	}
}

// TestUnconfirmed: a thread had a CPU while locks were read. The dump does not say that the thread waits for a lock,
// but that it may.
func TestUnconfirmed(t *testing.T) {
	const at = 0x1000
	enter := vmstructs.Wanted{How: vmstructs.WaitToEnter, Lock: vmstructs.Lock{Kind: vmstructs.MonitorLock, Monitor: 8}}
	other := enter
	other.Monitor = 16
	for what, c := range map[string]struct {
		was, is              vmstructs.Wanted
		unsettled, still     bool
		told, mayBeConfirmed bool
	}{
		"still":                {was: enter, is: enter, still: true, told: true},
		"ran":                  {was: enter, is: enter, mayBeConfirmed: true},
		"wants another one":    {was: other, is: enter, still: true},
		"while it is moved":    {was: other, is: enter, unsettled: true, mayBeConfirmed: true},
		"waits for no lock":    {unsettled: true},
		"waits to be notified": {was: vmstructs.Wanted{}, is: vmstructs.Wanted{How: vmstructs.WaitToNotify}},
	} {
		round := func(w vmstructs.Wanted) *lockRound {
			return &lockRound{settled: !c.unsettled, still: map[uint64]bool{at: c.still},
				threads: map[uint64]*vmstructs.ThreadLocks{at: {Thread: vmstructs.Thread{Addr: at, NSTID: 41}, Wants: w}}}
		}
		d := &dumping{byTID: map[int]int{41: 0}, threads: []profile.ThreadDump{{TID: 41}}}
		r := lockReader{d: d, tids: map[uint64]int{at: 41}}
		r.tell(round(c.was), round(c.is))
		if th := &d.threads[0]; (th.WaitsFor != nil) != c.told || th.Unconfirmed != c.mayBeConfirmed {
			t.Errorf("%s: %+v, unconfirmed %t", what, th.WaitsFor, th.Unconfirmed)
		}
	}
}
