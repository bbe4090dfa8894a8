package vmstructs

import (
	"errors"
	"testing"

	"goprof/process"
)

// thread makes a JavaThread. Its OSThread has the thread id.
func (w *world) thread(tid uint32, state ThreadState) uint64 {
	l := &w.l.thread
	at, os := w.alloc(l.end+1024), w.alloc(512)
	w.put64(at, 0x1234) // vtable
	w.put64(at+uint64(l.osThread), os)
	w.put32(os+uint64(l.tid), tid)
	w.put32(at+uint64(l.state), uint32(state))
	w.put64(at+uint64(l.stackBase), 0x7fff00000000)
	w.put64(at+uint64(l.stackSize), 1<<20)
	return at
}

// list makes a list of these threads, as the JVM's list of threads.
func (w *world) list(threads ...uint64) {
	l := &w.l.thread
	if l.list == 0 {
		w.put64(l.head, threads[len(threads)-1]) // the newest thread
		for i, at := range threads[1:] {
			w.put64(at+uint64(l.next), threads[i])
		}
		return
	}
	list, array := w.alloc(64), w.alloc(8*len(threads))
	w.put64(l.list, list)
	w.put32(list+uint64(l.listLength), uint32(len(threads)))
	w.put64(list+uint64(l.listThreads), array)
	for i, at := range threads {
		w.put64(array+8*uint64(i), at)
	}
}

func TestThreadsOfEveryJDK(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		var at []uint64
		for i := range uint32(100) { // more threads than one call reads
			at = append(at, w.thread(1000+i, StateBlocked))
		}
		w.list(at...)
		got, err := w.vm.Threads()
		if err != nil || len(got) != len(at) {
			t.Fatalf("%d threads, %v", len(got), err)
		}
		for i, th := range got {
			want := Thread{Addr: at[i], NSTID: 1000 + i, State: StateBlocked, StackBase: 0x7fff00000000, StackSize: 1 << 20}
			if th != want {
				t.Fatalf("%+v, want %+v", th, want)
			}
		}
	})
}

func TestHostileThreadLists(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		a, b := w.thread(1, StateInJava), w.thread(2, StateInNative)
		l := &w.l.thread
		w.list(a, 0xdead00000, b)
		if l.list == 0 { // a circular linked list
			w.put64(b+uint64(l.next), a)
			w.put64(a+uint64(l.next), b)
		}
		got, err := w.vm.Threads()
		if err != nil || len(got) != 2 || got[0].NSTID != 1 || got[1].NSTID != 2 {
			t.Errorf("%+v %v", got, err)
		}
		if l.list == 0 {
			return
		}
		list := w.alloc(64)
		w.put64(l.list, list)
		w.put32(list+uint64(l.listLength), 0xffffffff)
		if _, err := w.vm.Threads(); !errors.Is(err, ErrBadThread) {
			t.Errorf("4 billion threads: %v", err)
		}
		w.put32(list+uint64(l.listLength), 1000)
		w.put64(list+uint64(l.listThreads), 0xdead00000)
		if _, err := w.vm.Threads(); !errors.Is(err, process.ErrFault) {
			t.Errorf("freed list: %v", err)
		}
	})
}

func TestAnchors(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		at := w.thread(7, StateInNative)
		l := &w.l.thread
		anchor := at + uint64(l.anchor)
		w.put64(anchor+uint64(l.sp), 0x7ffe1000)
		w.put64(anchor+uint64(l.pc), 0x7f10dead)
		w.put64(anchor+uint64(l.fp), 0x7ffe1040)
		want := Anchor{0x7ffe1000, 0x7f10dead, 0x7ffe1040}
		if got, ok := w.vm.AnchorIn(sideOf(w.vm, at)); !ok || got != want {
			t.Errorf("%+v %v", got, ok)
		}
		off, ok := w.vm.WrapperAnchorOffset()
		saved := make([]byte, l.anchorSpan)
		if err := w.Read(anchor-uint64(l.wrapperAnchor)+off, saved); err != nil || !ok {
			t.Fatal(err, ok)
		}
		if got, ok := w.vm.DecodeAnchor(saved); !ok || got != want {
			t.Errorf("wrapper: %+v %v", got, ok)
		}
	})
}

// sideOf copies the part of a JavaThread that the sampler copies in the pause. It returns nil if that fails.
func sideOf(vm *VM, thread uint64) []byte {
	from, size := vm.Side()
	side := make([]byte, size)
	if vm.mem.Bytes(thread+from, side) != nil {
		return nil
	}
	return side
}

// TestTrapPC: the pc of a trap comes from the copy that was made in the pause. The copies in older recordings do not
// have it.
func TestTrapPC(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		at := w.thread(7, StateInJava)
		l := &w.l.thread
		w.put64(at+uint64(l.trapPC), 0x7f10beef)
		w.put64(at+uint64(l.anchor)+uint64(l.sp), 0x7ffe1000)
		side := sideOf(w.vm, at)
		if pc, ok := w.vm.TrapPC(side); !ok || pc != 0x7f10beef {
			t.Errorf("%#x %v", pc, ok)
		}
		short := side[:l.anchorSpan]
		if pc, ok := w.vm.TrapPC(short); ok {
			t.Errorf("out of %d bytes: %#x", len(short), pc)
		}
		if a, ok := w.vm.AnchorIn(short); !ok || a.SP != 0x7ffe1000 {
			t.Errorf("anchor out of %d bytes: %+v %v", len(short), a, ok)
		}
		if a, ok := w.vm.AnchorIn(nil); ok {
			t.Errorf("anchor out of nothing: %+v", a)
		}
	})
}

// TestVFrames: a thread is unpacking a compiled frame of two methods.
func TestVFrames(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		sample(w)
		b, err := w.vm.Blob(worldLow + 4<<worldLog2 + w.l.code.blockSize + nmCodeAt)
		if err != nil {
			t.Fatal(err)
		}
		th := w.thread(7, StateInVM)
		begin, _ := w.vm.Side()
		side := func() []byte {
			off, size := w.vm.Side()
			b := make([]byte, size)
			if err := w.Read(th+off, b); err != nil {
				t.Fatal(err)
			}
			return b
		}
		if got, err := w.vm.VFrames(&process.Snapshot{SideAddr: th + begin, Side: side()}); err != nil || got.Frames != nil {
			t.Fatalf("nothing to unpack: %v %v", got, err)
		}
		l := &w.l.deopt
		array := w.alloc(l.elements + 3*int(l.elementSize))
		w.put64(th+uint64(l.head), array)
		w.put32(array+uint64(l.frames), 2)
		w.put64(array+uint64(l.caller), 0x7f12345)
		for i, bci := range []uint32{6, 3} {
			e := array + uint64(l.elements) + uint64(i)*l.elementSize
			w.put32(e+uint64(l.bci), bci)
			w.put64(e+uint64(l.method), b.Method.Addr)
		}
		got, err := w.vm.VFrames(&process.Snapshot{SideAddr: th + begin, Side: side()})
		if err != nil || got.CallerSP != 0x7f12345 || tell(got.Frames) != "app.Main.outer:6:12 < app.Main.outer:3:10" {
			t.Errorf("%s %#x %v", tell(got.Frames), got.CallerSP, err)
		}
		followed := make([]byte, l.elements+3*int(l.elementSize))
		if err := w.Read(array, followed); err != nil {
			t.Fatal(err)
		}
		w.put32(array+uint64(l.frames), 1<<30)
		// The copy from the pause is used, whatever the memory has now. The copy must be complete.
		snap := &process.Snapshot{SideAddr: th + begin, Side: side(), Followed: followed, RunsOn: true}
		if got, err := w.vm.VFrames(snap); err != nil || tell(got.Frames) != "app.Main.outer:6:12 < app.Main.outer:3:10" {
			t.Errorf("copied: %s %v", tell(got.Frames), err)
		}
		for _, short := range []int{0, l.elements - 1, l.elements + int(l.elementSize)} {
			snap.Followed = followed[:short]
			if got, err := w.vm.VFrames(snap); err == nil {
				t.Errorf("%d bytes of it: %s", short, tell(got.Frames))
			}
		}
		if at := w.vm.ThrownAt(side()); at != 0 {
			t.Errorf("thrown at %#x, and nothing was", at)
		}
		w.put64(th+uint64(l.thrownAt), 0x7f10cafe)
		if at := w.vm.ThrownAt(side()); at != 0x7f10cafe {
			t.Errorf("thrown at %#x", at)
		}
		if _, err := w.vm.VFrames(&process.Snapshot{SideAddr: th + begin, Side: side()}); !errors.Is(err, ErrBadThread) {
			t.Errorf("a billion frames: %v", err)
		}
	})
}

func TestThreadStateNames(t *testing.T) {
	for s, want := range map[ThreadState]string{2: "new", 4: "in native", 5: "in native transition", 6: "in VM",
		8: "in Java", 10: "waiting", 11: "waiting transition", 99: "state 99"} {
		if got := s.String(); got != want {
			t.Errorf("%d: %q, want %q", int(s), got, want)
		}
	}
}

// TestStateNumbers: JDK 28 has new numbers for the states of threads. A number without a name is not a state.
func TestStateNumbers(t *testing.T) {
	old := (&resolver{t: &tables{ints: map[string]int32{"_thread_new": 2, "_thread_in_native": 4, "_thread_in_vm": 6,
		"_thread_in_Java": 8, "_thread_blocked": 10}}}).stateNumbers()
	new := (&resolver{t: &tables{ints: map[string]int32{"_thread_new": 1, "_thread_in_native": 2, "_thread_in_vm": 3,
		"_thread_in_Java": 4, "_thread_blocked": 5}}}).stateNumbers()
	for _, c := range []struct {
		of     stateNumbers
		number int32
		want   string
	}{{old, 4, "in native"}, {old, 5, "in native transition"}, {new, 2, "in native"}, {new, 4, "in Java"},
		{new, 5, "waiting"}, {new, 10, "state 10"}, {new, 0, "state 0"}} {
		if got := c.of.of(c.number).String(); got != c.want {
			t.Errorf("%d: %q, want %q", c.number, got, c.want)
		}
	}
}
