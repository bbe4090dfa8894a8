//go:build linux

package perf

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/sampler/visit"
	"goprof/testdata/ctest"
)

// workProgram does the same piece of work on two threads for each line on stdin, with some KB of stack in use. It
// prints how much CPU time both threads have used for the piece.
const workProgram = `
static long size;
static pthread_barrier_t begin, end;
static volatile long used;
static void *work(void *x) {
	volatile unsigned char pad[12 << 10];
	static __thread unsigned table[1 << 14];
	for (int i = 0; i < sizeof pad; i++) pad[i] = i;
	for (;;) {
		pthread_barrier_wait(&begin);
		long from = cpu_ns();
		unsigned h = 1;
		for (long i = 0; i < size; i++) { h = h * 1103515245 + table[(h >> 8) & 16383] + pad[i & 1023]; table[h & 16383] += h; }
		__sync_fetch_and_add(&used, cpu_ns() - from + (h & 1));
		pthread_barrier_wait(&end);
	}
}
int main(int argc, char **argv) {
	size = atol(argv[1]);
	pthread_barrier_init(&begin, 0, 3);
	pthread_barrier_init(&end, 0, 3);
	pthread_t t;
	pthread_create(&t, 0, work, 0);
	pthread_create(&t, 0, work, 0);
	ready();
	char line[16];
	while (fgets(line, sizeof line, stdin)) {
		used = 0;
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
		say(used);
	}
}`

// BenchmarkEngines prints what sampling costs: the thread CPU time of a piece of work that two threads do, with and
// without sampling, and goprof's own CPU time for a sample, without the walk. All are measured in turns. What counts
// is the ratio to the same round's time without sampling.
//
//	go test ./sampler/perf -run '^$' -bench BenchmarkEngines -benchtime 1x -v
//
// GOPROF_BENCH_ROUNDS sets how many rounds there are (15).
func BenchmarkEngines(b *testing.B) {
	needWide(b)
	rounds := 15
	if n, err := strconv.Atoi(os.Getenv("GOPROF_BENCH_ROUNDS")); err == nil && n > 0 {
		rounds = n
	}
	p := ctest.Run(b, workProgram, "150000000")
	piece := func() float64 {
		if _, err := p.In.Write([]byte("\n")); err != nil {
			b.Fatal(err)
		}
		return float64(p.Number(b))
	}
	kinds := []benchKind{{"ptrace", 100}, {"perf", 100}, {"ptrace", 1000}, {"perf", 1000}}
	slower, cost, lost := make([][]float64, len(kinds)), make([][]float64, len(kinds)), make([]int64, len(kinds))
	piece()
	for range rounds {
		for i, k := range kinds {
			before := piece()
			stats, with := k.sample(b, p.PID, piece)
			after := piece()
			slower[i] = append(slower[i], 100*(2*with/(before+after)-1))
			cost[i] = append(cost[i], float64(stats.CPU.Nanoseconds())/1e3/float64(max(stats.Attempted, 1)))
			lost[i] += stats.LostSum()
		}
	}
	b.StopTimer()
	for i, k := range kinds {
		name := fmt.Sprintf("%s-%d", k.engine, k.rate)
		low, mid, high := quartiles(slower[i])
		b.Logf("%-12s %+.2f %% thread CPU (half of the rounds between %+.2f and %+.2f), %.1f us of goprof's CPU a sample, "+
			"%d lost",
			name, mid, low, high, median(cost[i]), lost[i])
		b.ReportMetric(mid, "%slower-"+name)
		b.ReportMetric(median(cost[i]), "us/sample-"+name)
	}
}

type benchKind struct {
	engine string
	rate   int
}

func (k benchKind) sample(b *testing.B, pid int, piece func() float64) (sampler.Stats, float64) {
	var e sampler.Engine = visit.New(pid, ctest.CPU())
	if k.engine == "perf" {
		e = New(pid, ctest.CPU())
	}
	q := sampler.NewQueue(256)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := e.Run(ctx, sampler.Config{Interval: time.Second / time.Duration(k.rate)}, q)
		done <- err
	}()
	go func() {
		for snap := range q.Looks() {
			q.Done(snap)
		}
	}()
	e.Stats() // Stats returns once the run has begun
	time.Sleep(20 * time.Millisecond)
	took := piece()
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return e.Stats(), took
}

func median(v []float64) float64 { _, mid, _ := quartiles(v); return mid }

func quartiles(v []float64) (low, mid, high float64) {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/4], v[len(v)/2], v[len(v)*3/4]
}
