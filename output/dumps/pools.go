package dumps

import (
	"fmt"
	"strings"

	"goprof/output"
	"goprof/process/maybe"
	"goprof/profile"
	"goprof/profile/pools"
)

// maxDoes bounds how many activities of one pool's threads the text shows.
const maxDoes = 6

// pools writes pools in place of their threads:
//
//	"http-nio-8080-exec-*"  200 of 200 busy, 1431 queued  ThreadPoolExecutor
//	    187: waits for com.zaxxer.hikari.pool.HikariPool.getConnection in shop.Cart.pay
//	    next task: shop.Order
//
//	"HikariPool-1"  10 of 10 connections out, 187 wait for one
//	    9: waits for 10.0.0.7:5432 in shop.Stock.query
func (w *dumpWriter) pools(d *profile.Dump) {
	if d.Pools.Err != "" {
		fmt.Fprintf(w, "executors and queues are not known: %s\n", output.Printable(d.Pools.Err))
	}
	for _, p := range pools.Known(d.Threads, d.Pools) {
		fmt.Fprintf(w, "\n\"%s\"  %s", output.CleanName(p.Name), p.Load())
		if len(p.Executors) > 0 {
			class := p.Executors[0].Class
			fmt.Fprintf(w, "  %s", output.CleanName(class[strings.LastIndexByte(class, '.')+1:]))
			if p.Executors[0].Kind == profile.Scheduler {
				w.WriteString(", runs virtual threads")
			}
		}
		w.WriteByte('\n')
		w.does(p.Members)
		for _, e := range p.Executors {
			if e.Next != "" {
				fmt.Fprintf(w, "    next task: %s\n", output.CleanName(e.Next))
			}
		}
	}
	for i := range d.Pools.Connections {
		c := &d.Pools.Connections[i]
		fmt.Fprintf(w, "\n\"%s\"  %s\n", output.CleanName(c.Name), pools.ConnectionsLoad(c))
		w.does(pools.Users(d.Threads, c, len(d.Pools.Connections) == 1))
	}
}

func (w *dumpWriter) does(members []pools.Member) {
	list := pools.Does(members)
	for i, text := range list {
		if i == maxDoes {
			fmt.Fprintf(w, "    %d more places\n", len(list)-i)
			break
		}
		fmt.Fprintf(w, "    %s\n", output.CleanName(text))
	}
}

// These are the fields of pools in "goprof dump --pools --json". A number that is not known is left out.
type (
	jsonPools struct {
		Pools       []jsonPool        `json:"pools"`
		Connections []jsonConnections `json:"connections,omitempty"`
		Error       string            `json:"pools_error,omitempty"`
	}
	jsonPool struct {
		Name      string   `json:"name"`
		Executor  string   `json:"executor,omitempty"` // its class
		Virtual   bool     `json:"virtual,omitempty"`  // it runs virtual threads
		Executors int      `json:"executors,omitempty"`
		Count     int      `json:"count"` // of threads
		Busy      int      `json:"busy"`
		Core      *int64   `json:"core,omitempty"`
		Most      *int64   `json:"most,omitempty"`
		Queued    *int64   `json:"queued,omitempty"`
		Room      *int64   `json:"room,omitempty"`
		Completed *int64   `json:"completed,omitempty"`
		Next      string   `json:"next,omitempty"`
		Late      int64    `json:"late_ns,omitempty"`
		TIDs      []int    `json:"tids"`
		Does      []string `json:"does,omitempty"`
	}
	jsonConnections struct {
		Name    string   `json:"name"`
		Lent    int      `json:"lent"`
		Total   int64    `json:"total"`
		Most    *int64   `json:"most,omitempty"`
		Waiting *int64   `json:"waiting,omitempty"`
		Longest *int64   `json:"longest_ns,omitempty"`
		TIDs    []int    `json:"tids,omitempty"` // threads that hold one, as far as known
		Does    []string `json:"does,omitempty"` // by the threads that hold or use one
	}
)

func poolsJSON(d *profile.Dump) *jsonPools {
	if d.Pools == nil {
		return nil
	}
	j := &jsonPools{Pools: []jsonPool{}, Error: d.Pools.Err}
	for _, p := range pools.Known(d.Threads, d.Pools) {
		out := jsonPool{Name: p.Name, Executors: len(p.Executors), Count: len(p.Members), Busy: p.Busy(),
			Queued: p.Queued().Pointer(), Completed: p.Done().Pointer(), Does: pools.Does(p.Members)}
		for i := range p.Members {
			out.TIDs = append(out.TIDs, p.Members[i].TID)
		}
		if len(p.Executors) > 0 {
			out.Executor = p.Executors[0].Class
		}
		if len(p.Executors) == 1 {
			e := p.Executors[0]
			out.Core, out.Most, out.Room = e.Core.Pointer(), e.Most.Pointer(), e.Room.Pointer()
			out.Next, out.Late, out.Virtual = e.Next, int64(e.Late), e.Kind == profile.Scheduler
		}
		j.Pools = append(j.Pools, out)
	}
	for i := range d.Pools.Connections {
		c := &d.Pools.Connections[i]
		out := jsonConnections{Name: c.Name, Lent: len(c.Lent), Total: c.All, Most: c.Most.Pointer(),
			Waiting: c.Waiting.Pointer(), TIDs: c.Holders,
			Does: pools.Does(pools.Users(d.Threads, c, len(d.Pools.Connections) == 1))}
		if longest, ok := c.Longest.Get(); ok {
			out.Longest = maybe.Known(int64(longest)).Pointer()
		}
		j.Connections = append(j.Connections, out)
	}
	return j
}
