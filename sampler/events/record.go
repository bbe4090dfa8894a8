//go:build linux

package events

import (
	"goprof/arch"
	"goprof/sampler/ring"
)

// eventSampleType is what a record of an event has. All events of a run have the same, so that one ring can hold the
// records of all (include/uapi/linux/perf_event.h, PERF_RECORD_SAMPLE: the order is that of the header):
//
//	u32 pid, tid; u64 time; u64 id; [u64 n; u64 ips[n]]; u32 size; bytes[size]; u64 abi, regs[];
//	u64 size; bytes[size]; u64 copied, if size is not 0
//
// ips are there where the kernel's frames are wanted. goprof does not ask for the period: with the period the kernel
// makes a sample of every event of its own counters (kernel/events/core.c, perf_swevent_event).

// eventRecord is one record of an event.
type eventRecord struct {
	ring.Sample
	id     uint64 // of the event that the record comes from
	raw    uint64 // where the bytes begin that the program or the tracepoint has written
	rawLen int
}

// parseEvent reads the record of an event.
func parseEvent(b ring.Bytes, r ring.Record, cpu *arch.CPU, chain bool, e *eventRecord) bool {
	at := r.At
	if r.End-at < 3*8 {
		return false
	}
	e.PID, e.TID = int(int32(b.U32(at))), int(int32(b.U32(at+4)))
	e.When, e.id = int64(b.U64(at+8)), b.U64(at+16)
	at, ok := b.ParseChain(at+24, r, chain, &e.Sample)
	if !ok || r.End-at < 8 {
		return false
	}
	// size counts the bytes that follow it. It is a multiple of 8 plus 4, so that size and bytes together are a
	// multiple of 8.
	size := uint64(b.U32(at))
	if size > r.End-at-4 || (size+4)%8 != 0 {
		return false
	}
	e.raw, e.rawLen = at+4, int(size)
	at += 4 + size
	return b.ParseMachine(at, r, cpu, &e.Sample)
}
