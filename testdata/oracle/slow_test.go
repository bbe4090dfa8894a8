//go:build linux

package oracle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"goprof/output/requests"
	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// gathered is a Sink that keeps requests.
type gathered struct{ *requests.Gatherer }

func (gathered) Begin(profile.Instant, profile.Meta)         {}
func (gathered) ThreadStart(profile.Instant, profile.Thread) {}
func (gathered) ThreadEnd(profile.Instant, profile.Thread)   {}
func (gathered) Tick(profile.Instant, int)                   {}

// timedRequest is what the program says of one of its requests.
type timedRequest struct {
	number int
	took   time.Duration
	most   string
}

// TestSlowRequests: of the requests that the program itself has timed, each has about the time that the program says,
// and the method in which the program says it spent most of that.
func TestSlowRequests(t *testing.T) {
	library := tracingLibraries(t)[0]
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.SlowRequests", append(append(jniFlags(jdk), "-Xmx64m", "--"), library)...)
		s := attach(t, jvm.PID)
		again(t, func(t testing.TB) { slowRequests(t, jvm, s) })
	})
}

func slowRequests(t testing.TB, jvm *jvmtest.JVM, s *session.Session) {
	const interval = 10 * time.Millisecond
	g := requests.New(nil)
	_, sum, err := s.Record(t.Context(), session.RecordOptions{Mode: session.WallMode, Interval: interval,
		Engine: session.PtraceEngine, Duration: 6 * time.Second, Sink: gathered{g}})
	if err != nil {
		t.Fatal(err)
	}
	began := sum.Meta.Start
	known := map[int]timedRequest{}
	for entry := range strings.SplitSeq(strings.Join(jvm.Command("log"), ""), ";") {
		var l timedRequest
		var ms int64
		if _, err := fmt.Sscan(entry, &l.number, &ms, &l.most); err != nil {
			t.Fatalf("%q: %v", entry, err)
		}
		l.took = time.Duration(ms) * time.Millisecond
		known[l.number] = l
	}
	right, slow := 0, 0
	all := g.Requests()
	for i := range all {
		r := &all[i]
		var number int
		fmt.Sscanf(r.Trace[:2], "%x", &number)
		l, is := known[number]
		if !is || r.From.Before(began.Add(time.Second)) || r.From.Add(l.took).After(began.Add(5*time.Second)) {
			continue // it began before the recording, or ended after it
		}
		if l.took > 400*time.Millisecond {
			slow++
		}
		// On a busy machine looks are late, so a time is known less well than two intervals.
		if off := (r.For - l.took).Abs(); off > max(4*interval, l.took/4) {
			t.Errorf("request %d: %v, and the program says %v", number, r.For, l.took)
		} else if !strings.HasPrefix(r.Parts[0].What, "SlowRequests."+l.most+" (") {
			t.Errorf("request %d: %v, and the program says %s", number, r.Parts, l.most)
		} else {
			right++
		}
	}
	t.Logf("%d requests, %d right, %d slow; %v", len(all), right, slow, sum.Links)
	if right < 10 || slow < 2 {
		t.Errorf("only %d requests were right, %d of them slow", right, slow)
	}
}
