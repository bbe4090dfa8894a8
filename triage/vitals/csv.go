//go:build linux

package vitals

import (
	"encoding/csv"
	"fmt"
	"io"
	"time"

	"goprof/process/maybe"
)

// Table has a row for each reading, the oldest first. It keeps only the facts that have a column.
type Table [][]string

// Add adds a reading.
func (t *Table) Add(r *Reading) {
	row := make([]string, len(csvColumns))
	for i, c := range csvColumns {
		row[i] = c.of(r)
	}
	*t = append(*t, row)
}

// CSV writes the table: a line with the names of the columns, and one for each reading.
func (t Table) CSV(to io.Writer) error {
	w := csv.NewWriter(to)
	head := make([]string, len(csvColumns))
	for i, c := range csvColumns {
		head[i] = c.name
	}
	w.Write(head)
	return w.WriteAll(t)
}

// csvColumns are the columns of csv. A field is empty if the fact is not known.
var csvColumns = []struct {
	name string
	of   func(r *Reading) string
}{
	{"time", func(r *Reading) string { return r.At.UTC().Format(time.RFC3339Nano) }},
	{"uptime_seconds", func(r *Reading) string { return seconds(r.JVM.Uptime) }},
	{"cpu_seconds", func(r *Reading) string { return seconds(r.Process.CPU) }},
	{"resident_bytes", func(r *Reading) string { return known(r.Process.RSS) }},
	{"swap_bytes", func(r *Reading) string { return known(r.Process.Swap) }},
	{"threads", func(r *Reading) string { return known(r.Process.Threads) }},
	{"open_files", func(r *Reading) string { return known(r.Process.FDs) }},
	{"heap_used_bytes", func(r *Reading) string { return known(r.JVM.GC.Heap.Used) }},
	{"heap_max_bytes", func(r *Reading) string { return known(r.JVM.GC.Heap.Max) }},
	{"old_used_bytes", func(r *Reading) string { return known(r.JVM.GC.Old.Used) }},
	{"metaspace_used_bytes", func(r *Reading) string { return known(r.JVM.Metaspace.Used) }},
	{"collections", func(r *Reading) string { return known(r.JVM.GC.Collections) }},
	{"compile_queue", func(r *Reading) string { return queueLength(&r.JVM.Code) }},
	{"group_memory_bytes", func(r *Reading) string { return known(r.Cgroup.Memory.Used) }},
	{"group_memory_max_bytes", func(r *Reading) string { return known(r.Cgroup.Memory.Max) }},
	{"group_throttled_seconds", func(r *Reading) string { return seconds(r.Cgroup.ThrottledTime) }},
	{"machine_running", func(r *Reading) string { return known(r.Machine.Running) }},
}

func known[T any](v maybe.Value[T]) string {
	if v, ok := v.Get(); ok {
		return fmt.Sprint(v)
	}
	return ""
}

// queueLength returns how many methods wait for all compilers.
func queueLength(code *Code) string {
	queues, ok := code.Queues.Get()
	n := 0
	for _, q := range queues {
		n += q.Length
	}
	return known(maybe.If(n, ok))
}

func seconds(v maybe.Value[time.Duration]) string {
	if d, ok := v.Get(); ok {
		return fmt.Sprintf("%.3f", d.Seconds())
	}
	return ""
}
