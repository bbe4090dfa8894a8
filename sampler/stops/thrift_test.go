package stops

import (
	"testing"
	"time"

	"goprof/sampler/ptrace"
)

func TestThrift(t *testing.T) {
	const asked = time.Millisecond
	var pauses ptrace.Histogram
	var th thrift
	pause := func(n int, each time.Duration) {
		for range n {
			pauses.Add(int64(each))
		}
	}
	want := func(what string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: interval %v, want %v", what, got, want)
		}
	}
	pause(thriftWindow-1, time.Second)
	want("too few to tell", th.interval(0.01, asked, &pauses), asked)
	pauses = ptrace.Histogram{}
	pause(thriftWindow, 10*time.Microsecond)
	want("just within 1 %", th.interval(0.01, asked, &pauses), asked)
	pause(thriftWindow, 100*time.Microsecond)
	want("10 % are too much", th.interval(0.01, asked, &pauses), 10*time.Millisecond)
	pause(thriftWindow, 10*time.Microsecond)
	want("cheaper again", th.interval(0.01, 10*time.Millisecond, &pauses), 10*time.Millisecond)
	pause(thriftWindow, time.Second)
	want("never for ever", th.interval(0.01, 10*time.Millisecond, &pauses), maxThrift)
	pause(thriftWindow, time.Second)
	want("no limit", th.interval(0, asked, &pauses), asked)
}
