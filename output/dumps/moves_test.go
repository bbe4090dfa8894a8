package dumps

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/profile"
)

// movingDumps are two dumps of one program. One thread works, and two do not move.
func movingDumps() []*profile.Dump {
	at := func(second int, cpu time.Duration) *profile.Dump {
		stack := profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "a.B.take"}, Kind: profile.C2}}}
		return &profile.Dump{At: time.Unix(int64(second), 0), Threads: []profile.ThreadDump{
			{TID: 1, Name: "worker\n", State: "RUNNABLE", CPU: cpu, Stack: stack},
			{TID: 2, Name: "pool-1-thread-1", State: "PARKED", Stack: stack},
			{TID: 3, Name: "pool-1-thread-2", State: "PARKED", Stack: stack}}}
	}
	first := at(0, time.Second)
	first.Threads[0].CPUAfter = 1100 * time.Millisecond
	return []*profile.Dump{first, at(5, 3*time.Second)}
}

func TestDumpMovesText(t *testing.T) {
	var b strings.Builder
	if err := MovesText(&b, movingDumps()); err != nil {
		t.Fatal(err)
	}
	want := []string{"", "=== 2 dumps in 5s",
		"CPU used between them: in all, and from each to the next",
		`1.9s 1.9s "worker?" tid=1 RUNNABLE`,
		"2 threads did not move: the same stack each time, and no CPU time",
		`2 PARKED "pool-1-thread-*"`}
	if d := cmp.Diff(want, wordsOfLines(b.String())); d != "" {
		t.Error(d)
	}
	b.Reset()
	if err := MovesText(&b, movingDumps()[:1]); err != nil || strings.Contains(b.String(), "no thread") {
		t.Errorf("of one dump: %s, %v", &b, err)
	}
}

func TestDumpSeriesJSON(t *testing.T) {
	var b strings.Builder
	if err := SeriesJSON(&b, movingDumps(), Shape{}); err != nil {
		t.Fatal(err)
	}
	const frames = `"frames":[{"name":"a.B.take","kind":"c2","bci":0}]`
	const pool = `{"tid":2,"name":"pool-1-thread-1","state":"PARKED",` + frames + `},{"tid":3,"name":"pool-1-thread-2","state":"PARKED",` + frames + `}`
	sameJSON(t, b.String(), `{"length_ns":5000000000,"dumps":[
	 {"threads":[{"tid":1,"name":"worker\n","state":"RUNNABLE","cpu_ns":1000000000,`+frames+`},`+pool+`]},
	 {"threads":[{"tid":1,"name":"worker\n","state":"RUNNABLE","cpu_ns":3000000000,`+frames+`},`+pool+`]}],
	 "moves":[{"tid":1,"name":"worker\n","still":false,"dumps":2,"cpu_ns":[1900000000],"cpu_sum_ns":1900000000},
	  {"tid":2,"name":"pool-1-thread-1","still":true,"dumps":2,"cpu_ns":[0],"cpu_sum_ns":0},
	  {"tid":3,"name":"pool-1-thread-2","still":true,"dumps":2,"cpu_ns":[0],"cpu_sum_ns":0}]}`)
}
