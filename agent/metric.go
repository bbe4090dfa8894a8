//go:build linux

package agent

import (
	"fmt"
	"io"
)

// WriteMetric writes a metric of an agent in Prometheus' text format.
func WriteMetric(w io.Writer, name, kind, help string, value any) {
	fmt.Fprintf(w, "# HELP %s%s %s\n# TYPE %[1]s%[2]s %[4]s\n%[1]s%[2]s %[5]v\n", prefix, name, help, kind, value)
}
