//go:build linux

package ring

// Hit is a record of a counter, or of an event into which a BPF program writes. All events with this form may share a
// ring (include/uapi/linux/perf_event.h, PERF_RECORD_SAMPLE: the order is that of the header):
//
//	u32 pid, tid; u64 time; u64 id; [u64 n; u64 ips[n]]; u32 size; bytes[size]; [u64 abi, regs[];
//	u64 size; bytes[size]; u64 copied, if size is not 0]
//
// ips are there if the kernel's frames are wanted. The part from abi on, which ParseMachine reads, is there if the
// thread's state is wanted. goprof does not ask for the period: with the period the kernel makes a sample of every
// event of its own counters (kernel/events/core.c, perf_swevent_event).
type Hit struct {
	Sample
	ID     uint64 // of the event that the record comes from
	Raw    uint64 // where the bytes begin that the program or the tracepoint has written
	RawLen int
}

// ParseHit reads the record up to what ParseMachine reads, and returns that position.
func (b Bytes) ParseHit(r Record, chain bool, h *Hit) (at uint64, ok bool) {
	at = r.At
	if r.End-at < 3*8 {
		return at, false
	}
	h.PID, h.TID = int(int32(b.U32(at))), int(int32(b.U32(at+4)))
	h.When, h.ID, h.Context = int64(b.U64(at+8)), b.U64(at+16), r.before.of(h.TID)
	at, ok = b.ParseChain(at+24, r, chain, &h.Sample)
	if !ok || r.End-at < 8 {
		return at, false
	}
	// size counts the bytes that follow it. It is a multiple of 8 plus 4, so that size and bytes together are a
	// multiple of 8.
	size := uint64(b.U32(at))
	if size > r.End-at-4 || (size+4)%8 != 0 {
		return at, false
	}
	h.Raw, h.RawLen = at+4, int(size)
	return at + 4 + size, true
}
