//go:build linux

package oracle

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// allocatedSink keeps the last count of each thread.
type allocatedSink struct{ last map[string]uint64 }

func (s *allocatedSink) Begin(profile.Instant, profile.Meta)         {}
func (s *allocatedSink) Sample(*profile.Sample)                      {}
func (s *allocatedSink) ThreadStart(profile.Instant, profile.Thread) {}
func (s *allocatedSink) ThreadEnd(profile.Instant, profile.Thread)   {}
func (s *allocatedSink) Tick(profile.Instant, int)                   {}
func (s *allocatedSink) Allocated(_ profile.Instant, t profile.Thread, bytes uint64) {
	s.last[t.JavaName] = bytes
}

// TestAllocatedWhileRecorded: a recording tells to the byte what each thread has allocated, as ThreadMXBean does.
func TestAllocatedWhileRecorded(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Vitals", "-Xmx256m")
		s, err := session.Attach(jvm.PID)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, stop := context.WithCancel(context.Background())
		visits := make(chan session.Visit)
		sink := &allocatedSink{last: map[string]uint64{}}
		ended := make(chan profile.Summary, 1)
		go func() {
			_, sum, err := s.Record(ctx, session.RecordOptions{Interval: 10 * time.Millisecond, Depth: 2048, Sink: sink,
				Visits: visits})
			if err != nil {
				t.Error(err)
			}
			ended <- sum
		}()
		visits <- func(*profile.Profile, *profile.Summary) {} // it has begun
		jvm.Command("allocators 5")
		told := map[string]uint64{}
		for _, line := range jvm.Command("allocated") {
			number, name, _ := strings.Cut(line, " ")
			told[name], _ = strconv.ParseUint(number, 10, 64)
		}
		stop()
		sum := <-ended
		if len(told) != 5 || sum.Allocated == nil {
			t.Fatalf("the program told %v, the account %v", told, sum.Allocated)
		}
		var all int64
		for _, th := range sum.Allocated.Threads {
			name, _, _ := strings.Cut(strings.TrimPrefix(th.Thread, "["), " tid=")
			if want, ok := told[name]; ok && uint64(th.Bytes) != want {
				t.Errorf("%s: %d bytes in the account, the program says %d", name, th.Bytes, want)
			} else if ok {
				all += th.Bytes
			}
		}
		for name, want := range told {
			if sink.last[name] != want {
				t.Errorf("%s: %d bytes told, the program says %d", name, sink.last[name], want)
			}
		}
		if all == 0 || sum.Allocated.Bytes < all {
			t.Errorf("%d bytes in all, %d of them of the allocators", sum.Allocated.Bytes, all)
		}
	})
}
