package jfr

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"goprof/profile"
)

// TestMetStacks: two files are equal: one from stacks with numbers, which are read only if the writer asks, and one
// from the same stacks without numbers. Stacks occur in many chunks, some of which forget the methods.
func TestMetStacks(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	known := make(map[string]uint64)
	var stacks []*profile.Stack
	for len(stacks) < 800 {
		s := randomStack(random, "shop")
		if text := stackText(s); known[text] == 0 {
			stacks = append(stacks, s)
			known[text] = uint64(len(stacks))
		}
	}
	order := make([]int, 8000)
	for i := range order {
		order[i] = random.IntN(min(len(stacks), i/4+1))
	}
	read := 0
	write := func(numbers bool) []byte {
		var file bytes.Buffer
		w := NewWriter(&file, Options{ChunkBytes: minChunkBytes})
		for i, n := range order {
			s := profile.Sample{At: moment(time.Duration(i) * time.Millisecond), Thread: worker, CPU: 1}
			if numbers {
				s.StackNumber = uint64(n + 1)
				s.Unread = func() error { read++; s.Stack = stacks[n]; return nil }
			} else {
				s.Stack = stacks[n]
			}
			if err := w.Sample(&s); err != nil {
				t.Fatal(err)
			}
			if i == len(order)/2 {
				if err := w.Flush(s.At); err != nil {
					t.Fatal(err)
				}
				w.pools.forget() // as if there were too many methods: the next chunk gives them new keys
			}
		}
		finish(t, w, moment(time.Hour))
		return file.Bytes()
	}
	if got, want := write(true), write(false); !bytes.Equal(got, want) {
		t.Error("the files differ")
	}
	if read < len(stacks) || read > 2*len(stacks) {
		t.Errorf("%d of %d stacks were read", read, len(stacks))
	}
}

// TestMetStacksAreBounded: the kept bytes are bounded, however many stacks there are.
func TestMetStacksAreBounded(t *testing.T) {
	var m metStacks
	b := make([]byte, 100_000)
	for n := range uint64(2000) {
		m.keep(n+1, append(b, fmt.Sprint(n)...), trace{}, 1)
	}
	if len(m.blocks) > maxMetBlocks {
		t.Errorf("%d blocks", len(m.blocks))
	}
	at, known := m.at.Get(2000, 0)
	if !known || !bytes.HasSuffix(at.b, []byte("1999")) {
		t.Errorf("the last stack: %v, %+v", known, at)
	}
}
