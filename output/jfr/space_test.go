package jfr

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"goprof/profile"
)

// TestSpaceShrinks: a chunk with many constants does not keep its memory until the end of the file.
func TestSpaceShrinks(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	at := time.Duration(0)
	sample := func(name string) {
		stack := stackOn(javaFrame(profile.C2, name, 1, 1))
		if err := w.Sample(&profile.Sample{At: moment(at), Thread: worker, Stack: stack, CPU: 1}); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 2000)
	for i := range 2000 {
		sample(fmt.Sprintf("shop.%s%d.run", long, i))
	}
	const small = 4 // chunks after the large one
	for range small {
		at += 2 * time.Minute
		sample("shop.Small.run")
	}
	finish(t, w, moment(at+1))

	r := NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), nil)
	largest := 0
	for {
		if _, err := r.Next(); err != nil {
			break
		}
		largest = max(largest, cap(r.space))
	}
	if r.Chunks() != 1+small || largest < 4_000_000 {
		t.Fatalf("%d chunks, space for %d bytes", r.Chunks(), largest)
	}
	if n := cap(r.space); n > 2*spareSpace {
		t.Errorf("at the end there is space for %d bytes", n)
	}
}

// TestStacksAreBounded: the stacks that a reader keeps take no more memory than maxCachedFrames allows.
func TestStacksAreBounded(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, Options{ChunkBytes: 64 << 20})
	const depth = 20_000
	stack := &profile.Stack{}
	for range depth {
		stack.Frames = append(stack.Frames, javaFrame(profile.C2, "shop.Deep.run", 1, 1))
	}
	const different = maxCachedFrames/depth + 1 // too many for one space, so each round makes all stacks again
	for i := range 3 * different {
		stack.Frames[0].Line = int32(i % different)
		if err := w.Sample(&profile.Sample{At: moment(0), Thread: worker, Stack: stack, CPU: 1}); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, w, moment(1))
	r := eachEvent(t, bytes.NewReader(file.Bytes()), func(*Event) {})
	if r.stacks.turn < 3 || r.Chunks() != 1 {
		t.Fatalf("%d spaces were filled, in %d chunks", r.stacks.turn, r.Chunks())
	}
	p := &r.stacks.space
	if p.kept > maxCachedFrames {
		t.Errorf("%d frames are kept", p.kept)
	}
	bytes := p.frames.size*int(unsafe.Sizeof(profile.Frame{})) + p.stacks.size*int(unsafe.Sizeof(profile.Stack{}))
	if bytes < 20<<20 || bytes > 25<<20 {
		t.Errorf("the space takes %d bytes", bytes)
	}
}
