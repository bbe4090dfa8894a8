package top

import (
	"io"
	"math"

	"goprof/output"
)

// The JSON of a reading. Its names always keep their meanings.
type (
	jsonReading struct {
		Threads []jsonTopThread `json:"threads"`
		Methods []jsonMethod    `json:"methods"`
		Pools   []jsonTopPool   `json:"pools,omitempty"`
	}
	jsonTopPool struct {
		Name   string `json:"name"`
		Busy   int    `json:"busy"` // of count threads; for connections, the lent ones
		Count  int    `json:"count"`
		Queued *int64 `json:"queued"` // tasks; for connections, threads that wait for one; null: not known
	}
	jsonTopThread struct {
		TID   int     `json:"tid"`
		Name  string  `json:"name"`
		State string  `json:"state"`
		CPU   float64 `json:"cpu"`        // 1 is one CPU all the time
		Frame string  `json:"frame"`      // empty: none, or not known
		Alloc *int64  `json:"alloc_rate"` // bytes a second; null: not known
	}
	jsonMethod struct {
		Name  string  `json:"name"`
		Self  float64 `json:"self"` // shares of all samples, 0 to 1
		Total float64 `json:"total"`
	}
)

// JSON writes the threads, those with the most CPU time first, and the methods, those with the largest share first. It
// does not change text of the target, but escapes it as JSON demands.
func JSON(to io.Writer, r *Reading) error {
	j := jsonReading{Threads: []jsonTopThread{}, Methods: []jsonMethod{}}
	for _, t := range sortedThreads(r.Threads, ByCPU, false) {
		row := jsonTopThread{TID: t.TID, Name: t.Name, State: t.State, CPU: rounded(t.CPU), Frame: t.Frame}
		if t.AllocKnown {
			row.Alloc = new(int64(math.Round(t.Alloc)))
		}
		j.Threads = append(j.Threads, row)
	}
	for _, m := range r.Methods {
		j.Methods = append(j.Methods, jsonMethod{m.Name, rounded(m.Self), rounded(m.Total)})
	}
	sortPools(r.Pools)
	for _, p := range r.Pools {
		j.Pools = append(j.Pools, jsonTopPool{p.Name, p.Busy, p.Count, p.Queued})
	}
	return output.WriteJSON(to, j)
}

// rounded removes meaningless digits.
func rounded(x float64) float64 { return math.Round(x*1e4) / 1e4 }
