package requests

import (
	"cmp"
	"sort"
	"time"
)

// Difference is what slow requests spend more time in than the others.
type Difference struct {
	What         string
	Slow, Others time.Duration // of one request, on average
}

// leastDifference is how large a part of the slow requests' time a Difference is at least.
const leastDifference = 0.05

// Differences compares the first n requests with the rest, the largest difference first. It is empty if there are no
// others.
func Differences(all []Request, n int) (out []Difference) {
	if n == 0 || n >= len(all) {
		return nil
	}
	slow, others := means(all[:n]), means(all[n:])
	total := time.Duration(0)
	for i := range all[:n] {
		total += all[i].For / time.Duration(n)
	}
	for what, of := range slow {
		if d := of - others[what]; d > 0 && float64(d) >= leastDifference*float64(total) {
			out = append(out, Difference{what, of, others[what]})
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return cmp.Or(cmp.Compare(b.Slow-b.Others, a.Slow-a.Others), cmp.Compare(a.What, b.What)) < 0
	})
	return out
}

// means returns the time of each part of one request, on average.
func means(of []Request) map[string]time.Duration {
	sum := map[string]time.Duration{}
	for i := range of {
		for _, p := range of[i].Parts {
			sum[p.What] += p.For
		}
		if of[i].Unseen > 0 {
			sum[Unseen] += of[i].Unseen
		}
	}
	for what := range sum {
		sum[what] /= time.Duration(len(of))
	}
	return sum
}

// Unseen is the name of the time in which no thread had a request.
const Unseen = "no thread had it (a queue, another process)"
