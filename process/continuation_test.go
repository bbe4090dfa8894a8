package process

import "testing"

// TestContinuationRoom: frames may be spread over chunks in any way, and large chunks may come in any order. Little
// memory is kept for the next continuation. Chunks of one continuation share no memory.
func TestContinuationRoom(t *testing.T) {
	var c Continuation
	for round := range 64 {
		c.Reset()
		for i := range 64 {
			n := 512
			if i == round {
				n = 4 << 20
			}
			chunk := c.Add(uint64(i), n)
			if len(chunk.Stack) != n || cap(chunk.Stack) != n {
				t.Fatalf("%d bytes, room for %d, not %d", len(chunk.Stack), cap(chunk.Stack), n)
			}
			for k := range chunk.Stack {
				chunk.Stack[k] = byte(i)
			}
		}
		for i := range c.Chunks {
			if s := c.Chunks[i].Stack; s[0] != byte(i) || s[len(s)-1] != byte(i) {
				t.Fatalf("chunk %d holds %d and %d", i, s[0], s[len(s)-1])
			}
		}
	}
	c.Reset()
	kept := cap(c.room)
	for _, chunk := range c.Chunks[:cap(c.Chunks)] {
		kept += cap(chunk.Stack)
	}
	if kept > keptRoom {
		t.Errorf("%d bytes are kept", kept)
	}
	n := testing.AllocsPerRun(10, func() {
		c.Reset()
		c.Add(1, 4096)
		c.Add(2, 512)
	})
	if n > 0 {
		t.Errorf("%.1f allocations for continuations as large as those before", n)
	}
}
