package jfr

import (
	"bytes"
	"testing"
	"time"

	"goprof/profile"
)

// TestNoFramesTakeNoRoom: events with a stack without frames do not change the tables.
func TestNoFramesTakeNoRoom(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	cut := &profile.Stack{Truncated: profile.TooDeep}
	for i := range 3 * firstSlots {
		s := profile.Sample{At: moment(time.Duration(i)), Thread: worker, Stack: cut, CPU: 1}
		if err := w.Sample(&s); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, w, moment(time.Second))
	n := 0
	r := eachEvent(t, bytes.NewReader(file.Bytes()), func(e *Event) {
		if n++; e.StackNumber != 0 || e.Stack == nil || e.Stack.Truncated != profile.TooDeep {
			t.Fatalf("%+v", e)
		}
	})
	if numbers := &r.stacks.numbers; n != 3*firstSlots || numbers.byBytes.used+numbers.byFrames.used != 0 {
		t.Errorf("%d events, %d and %d places used", n, numbers.byBytes.used, numbers.byFrames.used)
	}
}

// TestLackingMethods: a stack in another tool's file keeps its number as long as chunks have its methods. In a chunk
// without them it is another stack.
func TestLackingMethods(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	for chunk := range 4 {
		at := moment(time.Duration(chunk) * time.Second)
		if err := w.Sample(&profile.Sample{At: at, Thread: worker, Stack: stackOn(javaFrame(profile.C2,
			"shop.Cart.add", 1, 1)), CPU: 1}); err != nil {
			t.Fatal(err)
		}
		if chunk == 1 {
			w.pools.methods.reset()
		}
		if err := w.Flush(at); err != nil {
			t.Fatal(err)
		}
	}
	theirs := bytes.ReplaceAll(file.Bytes(), []byte("goprof.Recording"), []byte("others.Recording"))
	r := NewReader(bytes.NewReader(theirs), int64(len(theirs)), func(name string, _ bool) bool {
		return name == "jdk.ExecutionSample"
	})
	r.NumberStacks()
	var numbers []uint64
	for range 4 {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, e.StackNumber)
	}
	if n := numbers; n[0] == n[1] || n[0] != n[2] || n[0] != n[3] {
		t.Errorf("stacks %d", n)
	}
}
