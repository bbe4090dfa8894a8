//go:build linux

package ring

import (
	"golang.org/x/sys/unix"

	"goprof/sampler/look"
)

// For which span a thread works. Package span has a BPF program write that, either among the bytes of a Hit, or into a
// record of its own right before a sample:
//
//	u32 pid, tid; u64 time; u32 size; bytes[size]
//
// The bytes are a look.ContextState of 8 bytes, which is not 0 here, and the thread's record.

const (
	// SpanSize is how many bytes a program writes.
	SpanSize = 40
	// SpanRecord is the size of the whole record, SpanMark where in it size and the state are.
	SpanRecord = SpanMark + 4 + spanPadded
	SpanMark   = HeaderSize + 16
	spanPadded = SpanSize + 4 // so that it ends at a multiple of 8

	spanSampleType = unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_RAW
)

// spanBefore is the span of which a record was read last; tid 0: there is none.
type spanBefore struct {
	tid     int
	context look.Context
}

// of is the context of a sample of that thread. Between the two records nothing else may lie.
func (s *spanBefore) of(tid int) look.Context {
	if s == nil || s.tid != tid {
		return look.Context{}
	}
	return s.context
}

// SpanAttr asks for an event into which a program writes spans. They wake nobody up.
func SpanAttr() unix.PerfEventAttr {
	return unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: unix.PERF_ATTR_SIZE_VER5,
		Config: unix.PERF_COUNT_SW_BPF_OUTPUT, Sample: 1, Sample_type: spanSampleType,
		Bits: unix.PerfBitUseClockID | unix.PerfBitExcludeHv, Clockid: unix.CLOCK_MONOTONIC}
}

// BeginsSpan reports whether the word of a sample at SpanMark is that of a span. In other samples the number of an
// event or of addresses is there, or an ABI: the upper half is 0.
//
//go:nosplit
func BeginsSpan(word uint64) bool { return uint32(word) == spanPadded && word>>32 != 0 }

// parseSpan reads the record if it is of a span.
func (b Bytes) parseSpan(r Record, to *spanBefore) bool {
	if r.End-r.At != SpanRecord-HeaderSize || !BeginsSpan(b.U64(r.At+SpanMark-HeaderSize)) {
		return false
	}
	to.tid, to.context = int(int32(b.U32(r.At+4))), b.Span(r.At+SpanMark-HeaderSize+4)
	return true
}

// Span reads what a program has written at a position.
func (b Bytes) Span(at uint64) look.Context {
	state := look.ContextState(min(b.U32(at), uint32(look.ContextUnreadable)))
	if state != look.ContextRead {
		return look.Context{State: state}
	}
	var record [look.ContextSize]byte
	b.CopyTo(record[:], at+8)
	return look.ParseContext(record[:])
}
