//go:build linux

package sampletest

import (
	"encoding/binary"

	"goprof/arch/amd64"
)

// RecordOf is one record as the kernel writes it: a header, and words.
func RecordOf(kind, misc int, body ...uint64) []byte {
	r := binary.LittleEndian.AppendUint32(nil, uint32(kind))
	r = binary.LittleEndian.AppendUint16(r, uint16(misc))
	r = binary.LittleEndian.AppendUint16(r, uint16(8+8*len(body)))
	for _, w := range body {
		r = binary.LittleEndian.AppendUint64(r, w)
	}
	return r
}

// SampleOf is a sample of amd64. Register i holds 100+i. The stack holds these words.
func SampleOf(misc int, stack []uint64, copied uint64) []byte {
	const abi64 = 2 // PERF_SAMPLE_REGS_ABI_64
	body := []uint64{7<<32 | 6, 12345, abi64}
	for i := range amd64.CPU.Perf.Len() {
		body = append(body, uint64(100+i))
	}
	body = append(body, uint64(8*len(stack)))
	body = append(body, stack...)
	if len(stack) > 0 {
		body = append(body, copied)
	}
	const sample = 9 // PERF_RECORD_SAMPLE
	return RecordOf(sample, misc, body...)
}
