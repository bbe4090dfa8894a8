//go:build linux

package agent

import (
	"fmt"
	"io"
)

// Metric is a number that an agent publishes.
type Metric struct {
	name, kind, help string
	value            any
}

// Counter makes a Metric that only grows.
func Counter(name, help string, value any) Metric { return Metric{name, "counter", help, value} }

// Gauge makes a Metric that can grow and shrink.
func Gauge(name, help string, value any) Metric { return Metric{name, "gauge", help, value} }

// WriteMetrics writes metrics in Prometheus' text format.
func WriteMetrics(w io.Writer, metrics ...Metric) error {
	for _, m := range metrics {
		if _, err := fmt.Fprintf(w, "# HELP %s%s %s\n# TYPE %[1]s%[2]s %[4]s\n%[1]s%[2]s %[5]v\n", prefix, m.name, m.help,
			m.kind, m.value); err != nil {
			return err
		}
	}
	return nil
}
