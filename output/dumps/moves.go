package dumps

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/naming"
)

// These are the fields of "goprof dump -n 3 --json".
type (
	jsonSeries struct {
		Dumps []*jsonDump `json:"dumps"`
		// Length is the time from the first dump to the last.
		Length int64       `json:"length_ns"`
		Moves  []jsonMoves `json:"moves"`
	}
	jsonMoves struct {
		TID     int     `json:"tid,omitempty"`
		Virtual uint64  `json:"virtual,omitempty"`
		Name    string  `json:"name"`
		Still   bool    `json:"still"` // it had the same stack in all dumps, and used no CPU time between them
		Dumps   int     `json:"dumps"` // the number of dumps that have the thread
		CPU     []int64 `json:"cpu_ns"`
		CPUSum  int64   `json:"cpu_sum_ns"`
	}
)

// SeriesJSON writes several dumps, and what the threads did in between.
func SeriesJSON(to io.Writer, dumps []*profile.Dump, shape Shape) error {
	j := jsonSeries{Dumps: []*jsonDump{}, Moves: []jsonMoves{}, Length: int64(lengthOf(dumps))}
	for _, d := range dumps {
		j.Dumps = append(j.Dumps, jsonOf(d, shape))
	}
	moves := profile.Moves(dumps)
	for i := range moves {
		m := &moves[i]
		t := jsonMoves{TID: m.TID, Name: m.Name, Still: m.Still, Dumps: m.Dumps, CPUSum: int64(m.CPUSum()), CPU: []int64{}}
		if m.Virtual != nil {
			t.Virtual = m.Virtual.ID
		}
		for _, used := range m.CPU {
			t.CPU = append(t.CPU, int64(used))
		}
		j.Moves = append(j.Moves, t)
	}
	return output.WriteJSON(to, &j)
}

// lengthOf is the time from the first dump to the last.
func lengthOf(dumps []*profile.Dump) time.Duration {
	if len(dumps) == 0 {
		return 0
	}
	return dumps[len(dumps)-1].At.Sub(dumps[0].At)
}

// maxMoves bounds two lists in text: the threads with their CPU time, and the names of threads that did not move.
const maxMoves = 40

// MovesText writes which threads moved between dumps, and which did not:
//
//	=== 3 dumps in 10.0s
//	CPU used between them, in s:
//	    3.21   1.6   1.61  "worker-1" tid=4713
//	14 threads did not move: the same stack each time, and no CPU time
//	    10 PARKED "pool-1-thread-*"
func MovesText(to io.Writer, dumps []*profile.Dump) error {
	if len(dumps) < 2 {
		_, err := fmt.Fprintln(to, "\n=== one dump: it does not say what moves")
		return err
	}
	w := bufio.NewWriter(to)
	moves := profile.Moves(dumps)
	fmt.Fprintf(w, "\n=== %d dumps in %s\n", len(dumps), output.Round(lengthOf(dumps)))
	movesCPU(w, moves)
	movesStill(w, moves)
	movesPassing(w, moves, len(dumps))
	return w.Flush()
}

// movesCPU lists the threads that used CPU time, the highest first.
func movesCPU(w *bufio.Writer, moves []profile.ThreadMoves) {
	var busy []*profile.ThreadMoves
	for i := range moves {
		if moves[i].CPUSum() > 0 {
			busy = append(busy, &moves[i])
		}
	}
	if len(busy) == 0 {
		fmt.Fprintln(w, "no thread used CPU time between them")
		return
	}
	slices.SortStableFunc(busy, func(a, b *profile.ThreadMoves) int { return cmp.Compare(b.CPUSum(), a.CPUSum()) })
	fmt.Fprintln(w, "CPU used between them: in all, and from each to the next")
	for i, m := range busy {
		if i == maxMoves {
			fmt.Fprintf(w, "    and %d more threads\n", len(busy)-i)
			break
		}
		fmt.Fprintf(w, "    %-10s", output.Round(m.CPUSum()))
		for _, used := range m.CPU {
			fmt.Fprintf(w, " %-10s", output.Round(used))
		}
		fmt.Fprintf(w, " \"%s\" tid=%d %s\n", output.CleanName(m.Name), m.TID, output.CleanName(m.State))
	}
}

// movesStill names the threads that did not move, with one name for each pool.
func movesStill(w *bufio.Writer, moves []profile.ThreadMoves) {
	counts, total := map[string]int{}, 0
	for i := range moves {
		m := &moves[i]
		if !m.Still {
			continue
		}
		total++
		counts[fmt.Sprintf("%s \"%s\"", output.CleanName(m.State), output.CleanName(naming.Pool(m.Name)))]++
	}
	if total == 0 {
		fmt.Fprintln(w, "no thread stood still all the time")
		return
	}
	fmt.Fprintf(w, "%s did not move: the same stack each time, and no CPU time\n", output.Count(total, "thread"))
	for i, c := range ordered(counts) {
		if i == maxMoves {
			fmt.Fprintf(w, "    and %d more names\n", len(counts)-i)
			break
		}
		fmt.Fprintf(w, "    %4d %s\n", c.Count, c.Name)
	}
}

// movesPassing counts the threads that are not in all dumps.
func movesPassing(w *bufio.Writer, moves []profile.ThreadMoves, dumps int) {
	n := 0
	for i := range moves {
		if moves[i].Dumps < dumps {
			n++
		}
	}
	if n > 0 {
		fmt.Fprintf(w, "%s came or went meanwhile\n", output.Count(n, "thread"))
	}
}
