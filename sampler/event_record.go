//go:build linux

package sampler

import "goprof/arch"

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
	rawSample
	id     uint64 // of the event that the record comes from
	raw    uint64 // where the bytes begin that the program or the tracepoint has written
	rawLen int
}

// parseEvent reads the record of an event.
func (b ringBytes) parseEvent(r perfRecord, cpu *arch.CPU, chain bool, e *eventRecord) bool {
	at := r.at
	if r.end-at < 3*8 {
		return false
	}
	e.pid, e.tid = int(int32(b.u32(at))), int(int32(b.u32(at+4)))
	e.when, e.id = int64(b.u64(at+8)), b.u64(at+16)
	at, ok := b.parseChain(at+24, r, chain, &e.rawSample)
	if !ok || r.end-at < 8 {
		return false
	}
	// size counts the bytes that follow it. It is a multiple of 8 plus 4, so that size and bytes together are a
	// multiple of 8.
	size := uint64(b.u32(at))
	if size > r.end-at-4 || (size+4)%8 != 0 {
		return false
	}
	e.raw, e.rawLen = at+4, int(size)
	at += 4 + size
	return b.parseMachine(at, r, cpu, &e.rawSample)
}

// word reads a word from the bytes of a record. These bytes are not aligned as words are.
func (b ringBytes) word(at uint64) uint64 { return uint64(b.u32(at)) | uint64(b.u32(at+4))<<32 }
