//go:build linux

package ring

import (
	"encoding/binary"
	"slices"
	"testing"
)

// chainRecord is a record as the kernel writes it, in a ring of its own.
func chainRecord(kind, misc uint32, words ...uint64) (Bytes, Record) {
	b := make(Bytes, 256)
	for i, w := range words {
		binary.LittleEndian.PutUint64(b[HeaderSize+8*i:], w)
	}
	return b, Record{Kind: kind, Misc: misc, At: HeaderSize, End: HeaderSize + 8*uint64(len(words))}
}

func TestParseEventChain(t *testing.T) {
	const ids, when = 7 | 8<<32, 5_000
	name := binary.LittleEndian.Uint64([]byte("cc1\x00\x00\x00\x00\x00"))
	for what, c := range map[string]struct {
		kind, misc uint32
		words      []uint64
		want       Chain
	}{
		"a sample": {KindSample, 2, []uint64{ids, when, 3, ^uint64(511), 0x10, 0x20},
			Chain{PID: 7, TID: 8, When: when, Calls: []uint64{0x10, 0x20}}},
		"in the kernel": {KindSample, perfMiscInKernel, []uint64{ids, when, 0},
			Chain{PID: 7, TID: 8, When: when, InKernel: true}},
		"a beginning": {KindFork, 0, []uint64{7 | 3<<32, 7 | 4<<32, when, 3 | 4<<32, when},
			Chain{PID: 7, TID: 7, Parent: 3, When: when}},
		"an end": {KindExit, 0, []uint64{7 | 3<<32, 8 | 4<<32, when, ids, when},
			Chain{PID: 7, TID: 8, Parent: 3, When: when}},
		"a program": {KindComm, commExec, []uint64{ids, name, ids, when},
			Chain{PID: 7, TID: 8, When: when, Comm: "cc1", Exec: true}},
		"another name": {KindComm, 0, []uint64{ids, name, ids, when}, Chain{PID: 7, TID: 8, When: when, Comm: "cc1"}},
	} {
		c.want.Kind = c.kind
		b, r := chainRecord(c.kind, c.misc, c.words...)
		got, ok := b.ParseEventChain(r)
		if !ok || !slices.Equal(got.Calls, c.want.Calls) || got.PID != c.want.PID || got.TID != c.want.TID ||
			got.Parent != c.want.Parent || got.When != c.want.When || got.InKernel != c.want.InKernel ||
			got.Comm != c.want.Comm || got.Exec != c.want.Exec || got.Kind != c.want.Kind {
			t.Errorf("%s: %+v, %v, not %+v", what, got, ok, c.want)
		}
		for n := range 2 {
			b, r := chainRecord(c.kind, c.misc, c.words[:n]...)
			if got, ok := b.ParseEventChain(r); ok {
				t.Errorf("%s, cut to %d words: %+v", what, n, got)
			}
		}
	}
	b, r := chainRecord(KindSample, 0, ids, when, 1<<40, 1)
	if got, ok := b.ParseEventChain(r); ok {
		t.Errorf("more calls than there is room for: %+v", got)
	}
}
