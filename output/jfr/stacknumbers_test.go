package jfr

import (
	"bytes"
	"testing"
	"time"

	"goprof/profile"
)

// TestNoFramesTakeNoRoom: events of a stack without frames leave the tables as they are.
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
