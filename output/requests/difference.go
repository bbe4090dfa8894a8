package requests

import (
	"cmp"
	"sort"
	"time"
)

// Difference is a part in which slow requests spend more time than others.
type Difference struct {
	What         string
	Slow, Others time.Duration // for one request, on average
}

// leastDifference is the least share of the slow requests' time for a Difference.
const leastDifference = 0.05

// Differences returns where the first n requests spend more time than the others, the largest difference first. It is
// empty if there are no others.
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

// means returns the mean time that a request spends in each part.
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

// Unseen is the name for the time in which no thread worked for the request.
const Unseen = "no thread had it (a queue, another process)"
