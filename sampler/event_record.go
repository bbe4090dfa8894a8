//go:build linux

package sampler

import "goprof/arch"

// eventSampleType is what a record of an event has. All events of a run have the same, so that one ring can hold the
// records of all (include/uapi/linux/perf_event.h, PERF_RECORD_SAMPLE: the order is that of the header):
//
//	u32 pid, tid; u64 time; u64 id; [u64 n; u64 ips[n]]; u32 size; bytes[size]; u64 abi, regs[];
//	u64 size; bytes[size]; u64 copied, if size is not 0
//
// ips are there where the kernel's frames are wanted. The period is not asked for: with it the kernel makes a sample of
// every event of its own counters (kernel/events/core.c, perf_swevent_event).

// eventRecord is one record of an event.
type eventRecord struct {
	rawSample
	id     uint64 // of the event that it comes from
	raw    uint64 // where the bytes begin that program or tracepoint have written
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
	// The size is of what follows it: so that all is a multiple of 8, it is 4 more than one.
	size := uint64(b.u32(at))
	if size > r.end-at-4 || (size+4)%8 != 0 {
		return false
	}
	e.raw, e.rawLen = at+4, int(size)
	at += 4 + size
	return b.parseMachine(at, r, cpu, &e.rawSample)
}

// word reads a word of the bytes of a record, which are not where words are.
func (b ringBytes) word(at uint64) uint64 { return uint64(b.u32(at)) | uint64(b.u32(at+4))<<32 }
