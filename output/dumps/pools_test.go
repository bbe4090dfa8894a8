package dumps

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/process/maybe"
	"goprof/profile"
)

// poolsDump is a dump of an application with a pool of two threads, and a pool of connections.
func poolsDump() *profile.Dump {
	n := func(n int64) maybe.Value[int64] { return maybe.Known(n) }
	d := appDump()
	d.Pools = &profile.Pools{Executors: []profile.Executor{{Class: "java.util.concurrent.ThreadPoolExecutor",
		Threads: []int{31, 32}, Core: n(2), Most: n(2), Queued: n(7), Running: n(2), Next: "a." + evil}},
		Connections: []profile.Connections{{Name: evil, All: 3, Lent: []int64{1, 2, 3}, Waiting: n(2),
			Longest: maybe.Known(time.Minute)}}}
	return d
}

func TestDumpPools(t *testing.T) {
	var b strings.Builder
	if err := Text(&b, poolsDump(), Shape{Pools: true}); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(strings.Join(wordsOfLines(b.String()), "\n"), "\n\n")
	want := `"pool-1-thread-*" 2 of 2 busy, 7 queued ThreadPoolExecutor
2: waits for a.Pool.take
next task: a.` + evilText + `

"` + evilText + `" 3 of 3 connections out, 2 wait for one, the first for 1m0s`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	d := poolsDump()
	d.Pools = &profile.Pools{Err: "no " + evil}
	b.Reset()
	if err := Text(&b, d, Shape{Pools: true}); err != nil ||
		!strings.Contains(b.String(), "executors and queues are not known: no a") || strings.Contains(b.String(), "pool-1") {
		t.Errorf("%v: %s", err, &b)
	}
}

// TestDumpPoolsJSON: a number that is not known is missing, and zero is not.
func TestDumpPoolsJSON(t *testing.T) {
	d := poolsDump()
	d.Pools.Executors[0].Room, d.Pools.Connections[0].Lent = maybe.Known(int64(0)), nil
	var b strings.Builder
	if err := JSON(&b, d, Shape{}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Pools       []map[string]any
		Connections []map[string]any
		Threads     []any
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Threads) != len(d.Threads) || len(got.Pools) != 1 || len(got.Connections) != 1 {
		t.Fatalf("%+v", got)
	}
	p, c := got.Pools[0], got.Connections[0]
	_, done := p["completed"]
	if p["room"] != 0.0 || p["queued"] != 7.0 || p["busy"] != 2.0 || done || c["lent"] != 0.0 || c["longest_ns"] != 6e10 {
		t.Errorf("%v\n%v", p, c)
	}
}
