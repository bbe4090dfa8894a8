package unwind

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/testdata/captured"
)

// eachVirtual runs a test on each recording of carriers with virtual threads that have frames in the heap.
func eachVirtual(t *testing.T, test func(t *testing.T, file string, rec *captured.Recording, w *Walker)) {
	arm64, _ := filepath.Glob("testdata/arm64/virtual-*.walks")
	for _, file := range append(recordings(t, "virtual"), arm64...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			rec, w := recorded(t, file)
			w.RawNames = true
			test(t, file, rec, w)
		})
	}
}

// TestRecordedVirtual: stacks of virtual threads are those of the recording. A part of each stack is in the heap.
func TestRecordedVirtual(t *testing.T) {
	eachVirtual(t, func(t *testing.T, file string, rec *captured.Recording, w *Walker) {
		var text bytes.Buffer
		var stack profile.Stack
		for i, snap := range rec.Snapshots {
			rec.Step(i)
			w.Walk(snap, &stack)
			writeStack(&text, snap, &stack)
			fmt.Fprintf(&text, "  virtual %d %q, carrier from %d\n", stack.Virtual.ID, stack.Virtual.Name, stack.Carrier)
			if stack.Truncated != profile.Whole || stack.Carrier == 0 || stack.Frames[stack.Carrier-1].Func.Name != entryMethod {
				t.Errorf("walk %d: %v, carrier from %d", i, stack.Truncated, stack.Carrier)
			}
			down := slices.Collect(func(yield func(int) bool) {
				for k, f := range stack.Frames {
					if f.Func.Name == "truth.VirtualLoad.down" && !yield(k) {
						return
					}
				}
			})
			if len(down) != 25 {
				t.Errorf("walk %d: %d times down, not 25", i, len(down))
			}
		}
		compareGolden(t, strings.TrimSuffix(file, ".walks")+".golden.gz", text.Bytes())
		last := rec.Snapshots[len(rec.Snapshots)-1]
		if n := testing.AllocsPerRun(10, func() { w.Walk(last, &stack) }); n > 0 {
			t.Errorf("%.1f allocations a walk", n)
		}
	})
}

// TestChunkThatMovedOn: the copies of frames in the heap may be from a later moment than the pause. Such frames are
// left out, and the stack reports that.
func TestChunkThatMovedOn(t *testing.T) {
	cases := map[string]func(k *process.Continuation){
		"they changed while they were read": func(k *process.Continuation) { k.Settled = false },
		"all came back to the stack":        func(k *process.Continuation) { k.Chunks = nil },
		"the lowest frame on the stack is another": func(k *process.Continuation) {
			for i := range 32 {
				k.Base[len(k.Base)-1-i] ^= 0x55
			}
		},
		"what is left of the stack was not read": func(k *process.Continuation) { k.Base = nil },
		"it is another continuation's entry":     func(k *process.Continuation) { k.Entry += 64 },
		"one frame less": func(k *process.Continuation) {
			k.Chunks[0].Stack = k.Chunks[0].Stack[:len(k.Chunks[0].Stack)-64]
		},
		"the same chunk twice": func(k *process.Continuation) { k.Chunks = append(k.Chunks, k.Chunks[0]) },
		"a chunk of the same chunks": func(k *process.Continuation) {
			for range 40 {
				k.Chunks = append(k.Chunks, k.Chunks[0])
			}
		},
		"nothing but zeros":    func(k *process.Continuation) { clear(k.Chunks[0].Stack) },
		"an odd top":           func(k *process.Continuation) { k.Chunks[0].SP++ },
		"only the words below": func(k *process.Continuation) { k.Chunks[0].Stack = k.Chunks[0].Stack[:process.ChunkHead] },
	}
	eachVirtual(t, func(t *testing.T, _ string, rec *captured.Recording, w *Walker) {
		for name, change := range cases {
			for i, snap := range rec.Snapshots {
				rec.Step(i)
				var whole, stack profile.Stack
				w.Walk(snap, &whole)
				changed := *snap
				changed.Continuation = copyOf(&snap.Continuation)
				change(&changed.Continuation)
				w.Walk(&changed, &stack)
				if stack.Truncated != profile.Continuation || stack.Carrier != 0 || !stack.Mounted {
					t.Errorf("%s: walk %d: %v, carrier from %d", name, i, stack.Truncated, stack.Carrier)
				}
				// The remaining frames: those on the stack, and the stub in place of the others.
				n := len(stack.Frames) - 1
				if n < 1 || stack.Frames[n].Kind != profile.Stub || !slices.Equal(stack.Frames[:n], whole.Frames[:n]) {
					t.Errorf("%s: walk %d: %d frames are left", name, i, n)
				}
			}
		}
	})
}

func copyOf(k *process.Continuation) process.Continuation {
	c := *k
	c.Base = slices.Clone(k.Base)
	c.Chunks = slices.Clone(k.Chunks)
	for i := range c.Chunks {
		c.Chunks[i].Stack = slices.Clone(c.Chunks[i].Stack)
	}
	return c
}

// TestHostileChunks changes words of chunks at random. No walk panics or takes long. Each walk ends at the root of the
// continuation, or reports that it does not.
func TestHostileChunks(t *testing.T) {
	eachVirtual(t, func(t *testing.T, _ string, rec *captured.Recording, w *Walker) {
		rnd := rand.New(rand.NewPCG(3, 4))
		var stack profile.Stack
		cut := 0
		const tries = 3000
		for range tries {
			i := rnd.IntN(len(rec.Snapshots))
			snap := *rec.Snapshots[i]
			k := copyOf(&snap.Continuation)
			chunk := &k.Chunks[rnd.IntN(len(k.Chunks))]
			for range 1 + rnd.IntN(3) {
				at := rnd.IntN(len(chunk.Stack)/8) * 8
				switch from := rnd.IntN(len(chunk.Stack)/8) * 8; rnd.IntN(3) {
				case 0:
					copy(chunk.Stack[at:at+8], chunk.Stack[from:from+8])
				case 1:
					clear(chunk.Stack[at : at+8])
				default:
					chunk.Stack[at+rnd.IntN(8)] ^= 1 << rnd.IntN(8)
				}
			}
			snap.Continuation = k
			w.Walk(&snap, &stack)
			switch {
			case stack.Truncated != profile.Whole:
				cut++
			case stack.Frames[stack.Carrier-1].Func.Name != entryMethod:
				t.Fatalf("whole, but its root is %s", stack.Frames[stack.Carrier-1].Func.Name)
			}
			if len(stack.Frames) > w.MaxDepth {
				t.Fatalf("%d frames", len(stack.Frames))
			}
		}
		if cut < tries/20 {
			t.Errorf("only %d of %d changes were seen", cut, tries)
		}
	})
}
