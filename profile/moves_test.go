package profile

import (
	"slices"
	"testing"
	"time"
)

func TestMoves(t *testing.T) {
	const us = time.Microsecond
	at := func(method string, sp uint64) Stack {
		return Stack{Frames: []Frame{{Func: &Func{Name: method}, SP: sp}}}
	}
	dump := func(second int, threads ...ThreadDump) *Dump {
		return &Dump{At: time.Unix(int64(second), 0), Threads: threads}
	}
	dumps := []*Dump{
		dump(0,
			ThreadDump{TID: 1, State: "PARKED", Stack: at("park", 1), CPU: 10 * us, CPUAfter: 15 * us},
			ThreadDump{TID: 2, State: "RUNNABLE", Stack: at("run", 1), CPU: 10 * us, CPUAfter: 20 * us},
			ThreadDump{TID: 3, State: "PARKED", Stack: at("park", 1), CPUAfter: 1 * us},
			ThreadDump{TID: 4, State: "BLOCKED", Stack: at("enter", 1), CPUAfter: 1 * us},
			ThreadDump{TID: 5, State: "PARKED", Stack: at("park", 1)},
			ThreadDump{TID: 6, Err: "it did not stop"},
			ThreadDump{Virtual: &VirtualThread{ID: 1}, State: "parked", Stack: at("yield", 0)}),
		dump(5,
			ThreadDump{Virtual: &VirtualThread{ID: 1}, State: "parked", Stack: at("yield", 0)},
			ThreadDump{TID: 1, State: "PARKED", Stack: at("park", 1), CPU: 15 * us},
			ThreadDump{TID: 2, State: "RUNNABLE", Stack: at("run", 1), CPU: 520 * us},
			ThreadDump{TID: 3, State: "PARKED", Stack: at("park", 2), CPU: 1 * us},
			ThreadDump{TID: 4, State: "BLOCKED", Stack: at("enter", 1), CPU: 201 * us},
			ThreadDump{TID: 6, Err: "it did not stop"},
			ThreadDump{TID: 7, State: "PARKED", Stack: at("park", 1)}),
	}
	type moved struct {
		tid   int
		still bool
		cpu   time.Duration
		dumps int
	}
	var got []moved
	for _, m := range Moves(dumps) {
		got = append(got, moved{m.TID, m.Still, m.CPUSum(), m.Dumps})
	}
	want := []moved{{0, true, 0, 2}, {1, true, 0, 2}, {2, false, 500 * us, 2}, {3, false, 0, 2}, {4, true, 200 * us, 2},
		{6, false, 0, 2}, {7, false, 0, 1}, {5, false, 0, 1}}
	if !slices.Equal(got, want) {
		t.Errorf("\n%v, not\n%v", got, want)
	}
	if all := Moves(dumps[:1]); len(all) != 7 || all[0].Still {
		t.Error("of one dump nobody can say what moved")
	}
	if Moves(nil) != nil {
		t.Error("no dumps, and threads in them")
	}
}

func TestOrder(t *testing.T) {
	threads := []ThreadDump{{TID: 9, Name: "C1"}, {Virtual: &VirtualThread{ID: 5}}, {Virtual: &VirtualThread{ID: 4}},
		{TID: 2, Java: true, System: true}, {TID: 7, Java: true}, {TID: 3, Java: true}, {TID: 8, Java: true,
			Name: "main"}, {TID: 1}}
	Order(threads)
	var got []uint64
	for i := range threads {
		got = append(got, threads[i].born())
	}
	if want := []uint64{8, 3, 7, 2, 4, 5, 1, 9}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}
