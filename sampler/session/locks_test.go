//go:build linux

package session

import (
	"testing"

	"goprof/process"
	"goprof/vmstructs"
)

// TestAddressOfEndedThread: a thread has ended, and another that the dump does not know has come to the same address.
func TestAddressOfEndedThread(t *testing.T) {
	listed := func(tid int, addr uint64) *listedThread {
		return &listedThread{kernel: process.Thread{TID: tid, NSTID: tid}, java: vmstructs.Thread{Addr: addr, NSTID: tid}}
	}
	s := &Session{dir: &directory{threads: map[int]*listedThread{41: listed(41, 0x1000), 42: listed(42, 0x2000)}}}
	r := lockReader{d: &dump{Session: s}, tids: map[uint64]int{0x1000: 41, 0x2000: 42}}
	r.forgetNew([]vmstructs.Thread{{Addr: 0x1000, NSTID: 41}, {Addr: 0x2000, NSTID: 43}, {Addr: 0x3000, NSTID: 44}})
	if len(r.tids) != 1 || r.tids[0x1000] != 41 {
		t.Errorf("%v", r.tids)
	}
}
