package requests

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/profile"
)

const ms = int64(time.Millisecond)

// sampleAt returns a look at a thread that waits in a method, below the frame handle if it has one.
func sampleAt(at int64, thread int, trace byte, state profile.State, methods ...string) *profile.Sample {
	s := &profile.Sample{At: profile.Instant{Wall: 1e18 + at*ms}, Thread: profile.Thread{TID: thread}, Wall: true,
		Span: 10 * time.Millisecond, State: state, Stack: &profile.Stack{}}
	if trace != 0 {
		s.Link.Trace[0], s.Link.Span[0] = trace, byte(at)+1
	}
	for _, m := range append([]string{state.Label("")}, methods...) {
		kind := profile.Interpreted
		if strings.HasPrefix(m, "[") {
			kind = profile.StateFrame
		}
		s.Stack.Frames = append(s.Stack.Frames, profile.Frame{Func: &profile.Func{Name: m}, Kind: kind})
	}
	return s
}

func text(r *Request) string {
	parts := ""
	for _, p := range r.Parts {
		parts += fmt.Sprintf(", %v %s", p.For, p.What)
	}
	return fmt.Sprintf("%.2s %d threads %v, unseen %v%s", r.Trace, r.Threads, r.For, r.Unseen, parts)
}

// TestTraces: looks become requests by their traces, in any order.
func TestTraces(t *testing.T) {
	g := New(nil)
	for _, s := range []*profile.Sample{
		sampleAt(30, 1, 0xa, profile.Blocked, "com.shop.Cart.lock"),
		sampleAt(0, 1, 0xa, profile.Running, "com.shop.Cart.total"),
		sampleAt(10, 1, 0, profile.Blocked, "com.shop.Cart.lock"), // between two looks of one trace
		sampleAt(20, 1, 0xa, profile.Blocked, "com.shop.Cart.lock"),
		sampleAt(40, 1, 0, profile.Parked, "java.util.concurrent.LinkedBlockingQueue.take"), // after the trace
		sampleAt(70, 2, 0xa, profile.Running, "com.shop.Cart.send"),                         // another thread continues
		sampleAt(50, 1, 0xb, profile.Running, "com.shop.Cart.total"),
		sampleAt(60, 1, 0xc, profile.Running, "com.shop.Cart.total"),
		sampleAt(80, 1, 0xc, profile.Running, "com.shop.Cart.total"),
		sampleAt(90, 1, 0, profile.Running, "com.shop.Other.work"),
	} {
		g.Sample(s)
	}
	want := []string{
		"0a 2 threads 80ms, unseen 30ms, 30ms Cart.lock (blocked), 10ms Cart.send (running), 10ms Cart.total (running)",
		"0c 1 threads 30ms, unseen 0s, 20ms Cart.total (running)",
		"0b 1 threads 10ms, unseen 0s, 10ms Cart.total (running)",
	}
	all := g.Requests()
	if len(all) != len(want) {
		t.Fatalf("%d requests: %+v", len(all), all)
	}
	for i := range all {
		if got := text(&all[i]); got != want[i] {
			t.Errorf("%s\nwant %s", got, want[i])
		}
	}
}

// TestHolders: the thread with the lock that a request waits for is named, with the trace that it works for at that
// time.
func TestHolders(t *testing.T) {
	g := New(nil)
	for at := range int64(10) {
		g.Sample(sampleAt(10*at, 1, 0xa, profile.Blocked, "com.shop.Cart.lock"))
		trace := byte(0xb)
		if at > 5 {
			trace = 0
		}
		g.Sample(sampleAt(10*at, 2, trace, profile.Running, "com.shop.Cart.total"))
	}
	g.Sample(sampleAt(500, 1, 0xa, profile.Sleeping, "com.shop.Cart.rest")) // before it waited at 500
	var holds []Hold
	for _, at := range []int64{5, 15, 45, 75, 500} {
		owner := profile.ThreadRef{TID: 2, Name: "b"}
		if at == 45 {
			owner = profile.ThreadRef{TID: 3, Name: "c"}
		}
		holds = append(holds,
			Hold{At: time.Unix(0, 1e18+at*ms), Of: profile.ThreadRef{TID: 1}, Lock: "com.shop.Ledger", Owner: owner},
			Hold{At: time.Unix(0, 1e18+at*ms), Of: profile.ThreadRef{TID: 2}, Lock: "no wait", Owner: owner},
			Hold{At: time.Unix(0, 1e18+at*ms), Of: profile.ThreadRef{TID: 1}, Peer: "10.0.0.1:5432"}) // not at this look
	}
	for at := int64(600); at < 700; at += 10 {
		g.Sample(sampleAt(at, 1, 0xa, profile.Socket, "com.shop.Cart.call"))
		holds = append(holds,
			Hold{At: time.Unix(0, 1e18+at*ms), Of: profile.ThreadRef{TID: 1}, Peer: "10.0.0.7:5432"})
	}
	g.Holds(holds)
	for _, r := range g.Requests() {
		for _, p := range r.Parts {
			want := ""
			if r.Thread == "[tid=1]" && !strings.Contains(p.What, "rest") {
				want = `, com.shop.Ledger held by "b" tid=2 in trace 0b000000000000000000000000000000, at other times by 2 more`
			}
			if strings.Contains(p.What, "call") {
				want = ", connected to 10.0.0.7:5432"
			}
			if got := p.heldBy(); got != want {
				t.Errorf("%s %s%s\nwant %s", r.Thread, p.What, got, want)
			}
		}
	}
}

// TestMethod: a request is as long as its frame is on the stack. A gap of one look ends it.
func TestMethod(t *testing.T) {
	g := New(regexp.MustCompile(`Api[.]handle$`))
	for at := range int64(10) {
		methods := []string{"com.shop.Cart.total", "com.shop.Api.handle"}
		if at == 3 || at > 7 {
			methods = methods[:1]
		}
		g.Sample(sampleAt(10*at, 1, 0, profile.Running, methods...))
	}
	all := g.Requests()
	if len(all) != 2 || all[0].For != 40*time.Millisecond || all[1].For != 30*time.Millisecond || all[0].Trace != "" {
		t.Errorf("%+v", all)
	}
	if all[0].Cut || !all[1].Cut { // the second request was already there at the first look
		t.Errorf("cut: %v, %v", all[0].Cut, all[1].Cut)
	}
}

// TestNotLooks: samples without times, and samples that are not wall-clock looks, are counted and not kept.
func TestNotLooks(t *testing.T) {
	g := New(nil)
	for _, change := range []func(*profile.Sample){
		func(s *profile.Sample) { s.At = profile.Instant{} },
		func(s *profile.Sample) { s.TimeOnly = true },
		func(s *profile.Sample) { s.Wall = false },
		func(s *profile.Sample) { s.Stack = nil },
	} {
		s := sampleAt(0, 1, 0xa, profile.Running, "a.B.c")
		change(s)
		g.Sample(s)
	}
	if n := g.Requests(); len(n) != 0 || g.Timeless != 4 {
		t.Errorf("%v, %d", n, g.Timeless)
	}
}

// TestDifferences: a part in which slow requests spend more time is named. A part in which all spend equal time is not.
func TestDifferences(t *testing.T) {
	part := func(lock, sum time.Duration) Request {
		return Request{For: lock + sum, Parts: []Part{{What: "lock", For: lock}, {What: "sum", For: sum}}}
	}
	all := []Request{part(900, 50), part(700, 60), part(10, 50), part(20, 60), part(0, 50)}
	got := Differences(all, 2)
	if len(got) != 1 || got[0] != (Difference{"lock", 800, 10}) {
		t.Errorf("%+v", got)
	}
	if len(Differences(all, 0))+len(Differences(all, len(all))) != 0 {
		t.Error("there is nothing to compare with, and a difference")
	}
}

// TestWoken: the thread that ended a wait for a lock had the lock, and worked for its trace at that time. The thread
// that ends a wait for a queue has no lock.
func TestWoken(t *testing.T) {
	g := New(nil)
	const release = "java.util.concurrent.locks.AbstractQueuedSynchronizer.release"
	method := "com.shop.Cart.leave" // of the waker
	woken := func(at int64, state profile.State, what, label string, by byte) {
		s := sampleAt(at, 1, 0xa, state, "com.shop.Cart.enter")
		s.Stack.Frames[0].Func = &profile.Func{Name: state.Label(what)}
		above := []profile.Frame{}
		for _, name := range []string{"[far tid=99]", profile.WokenBy, label, method, profile.WokenBy} {
			above = append(above, profile.Frame{Func: &profile.Func{Name: name}, Kind: profile.Gap})
		}
		s.Stack.Frames = append(above, s.Stack.Frames...)
		s.WakerLink.Trace[0], s.WakerLink.Span[0] = by, by
		g.Sample(s)
	}
	woken(0, profile.Blocked, "com.shop.Cart", "[server-2 tid=7]", 0xb)
	woken(20, profile.Blocked, "com.shop.Cart", "[server-2 tid=7]", 0xb)
	woken(40, profile.Blocked, "com.shop.Cart", "[virtual #31]", 0)
	woken(60, profile.Parked, "ReentrantLock$NonfairSync", "[server-4 tid=9]", 0xd) // it interrupts the waiting thread
	method = release
	woken(80, profile.Parked, "LinkedBlockingQueue", "[server-3 tid=8]", 0xc)
	woken(100, profile.Parked, "ReentrantReadWriteLock$NonfairSync", "[server-3 tid=8]", 0xc) // perhaps another reader
	woken(120, profile.Parked, "ReentrantLock$NonfairSync", "[server-5 tid=10]", 0)
	if g.LacksHolders() {
		t.Error("the holders are not seen")
	}
	all := g.Requests()
	if len(all) != 1 || len(all[0].Parts) != 4 || all[0].Parts[0].What != "Cart.enter (blocked: com.shop.Cart)" {
		t.Fatalf("%+v", all)
	}
	want := []Holder{
		{"com.shop.Cart", profile.ThreadRef{TID: 7, Name: "server-2"}, "0b000000000000000000000000000000", "", 2},
		{"com.shop.Cart", profile.ThreadRef{Virtual: 31}, "", "", 1}}
	if got := all[0].Parts[0].Holders; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	unlocked := Holder{"ReentrantLock$NonfairSync", profile.ThreadRef{TID: 10, Name: "server-5"}, "", "", 1}
	if got := all[0].Parts[1].Holders; len(got) != 1 || got[0] != unlocked {
		t.Errorf("%+v", got)
	}
	if n := len(all[0].Parts[2].Holders) + len(all[0].Parts[3].Holders); n != 0 {
		t.Errorf("%+v", all[0].Parts[2:])
	}
	lacks := New(nil)
	s := sampleAt(0, 1, 0xa, profile.Blocked, "com.shop.Cart.enter")
	lacks.Sample(s)
	if !lacks.LacksHolders() {
		t.Error("there is nothing about holders")
	}
	timer := profile.Frame{Func: &profile.Func{Name: profile.WakerFrame("timer (interrupt)")}, Kind: profile.Gap}
	s.Stack.Frames = append([]profile.Frame{timer}, s.Stack.Frames...)
	if lacks.Sample(s); lacks.LacksHolders() {
		t.Error("the recording has wakers, and they are no threads")
	}
}

// TestWaitsHaveNoInterval: the mean length of waits is not a time between looks.
func TestWaitsHaveNoInterval(t *testing.T) {
	for _, waits := range []bool{false, true} {
		var b strings.Builder
		if err := (&Report{Waits: waits, Interval: time.Second}).JSON(&b); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "interval_seconds") == waits {
			t.Errorf("waits %v: %s", waits, b.String())
		}
	}
}
