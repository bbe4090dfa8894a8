//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"goprof/agent"
	"goprof/output/batchdir"
	"goprof/process"
)

// serveMetrics answers at a listener until the returned function is called. It has two pages and accepts no data.
func serveMetrics(at net.Listener, write func(io.Writer), healthy func() bool) (end func()) {
	pages := http.NewServeMux()
	pages.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		write(w)
	})
	pages.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !healthy() {
			http.Error(w, "the agent has not looked at its host for 30 s", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ok\n")
	})
	const patience = 10 * time.Second
	server := &http.Server{Handler: pages, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: time.Minute,
		MaxHeaderBytes: 8 << 10}
	go server.Serve(at)
	return func() { server.Close() }
}

func writeMetrics(w io.Writer, a *agent.Agent, h *agent.ThisHost, others *agent.Others, out *outlets) {
	a.Metrics().Write(w)
	g := h.Group()
	tables, most := process.TableBytes()
	for _, m := range []struct {
		name, kind, help string
		value            any
	}{
		{"cpu_visits_total", "counter", "Visits of CPUs.", g.Visits},
		{"cpu_visits_met_total", "counter", "Visits that met a thread of a recorded JVM.", g.Met},
		{"cpu_visits_others_total", "counter", "Visits that met another process.", g.Others},
		{"cpu_visits_missed_total", "counter", "Visits that were left out because their moment had passed long ago.",
			g.Missed},
		{"library_bytes", "gauge", "Symbols and unwind information of libraries, as they are paid for.",
			tables},
		{"library_bytes_max", "gauge", "The most of that; a JVM for which there is no room is refused as tables-full.", most},
		{"sampling_cpu_seconds_total", "counter", "CPU time of the sampling thread and its preempters.", g.CPU.Seconds()},
	} {
		oneMetric(w, m.name, m.kind, m.help, m.value)
	}
	if others != nil {
		samples, lost := others.Counts()
		oneMetric(w, "host_samples_total", "counter", "Samples of processes that are not recorded as JVMs.", samples)
		oneMetric(w, "host_records_lost_total", "counter", "Records of these for which the kernel had no room.", lost)
	}
	out.metrics(w)
}

func fileMetrics(w io.Writer, files *batchdir.Dir) {
	if files == nil {
		return
	}
	st := files.Stats()
	for _, m := range []struct {
		name, kind, help string
		value            any
	}{
		{"files_offered_total", "counter", "Batches for files.", st.Offered},
		{"files_written_total", "counter", "Files that were written.", st.Written},
		{"files_dropped_total", "counter", "Batches that did not become a file.", st.Dropped},
		{"files_failed_total", "counter", "Of these, those that could not be written.", st.Failed},
		{"files_removed_total", "counter", "Old files that were removed for want of room.", st.Removed},
		{"files", "gauge", "Files that are there.", st.Files},
		{"files_bytes", "gauge", "What they take.", st.Bytes},
	} {
		oneMetric(w, m.name, m.kind, m.help, m.value)
	}
}

func oneMetric(w io.Writer, name, kind, help string, value any) {
	fmt.Fprintf(w, "# HELP goprof_agent_%s %s\n# TYPE goprof_agent_%[1]s %[3]s\ngoprof_agent_%[1]s %[4]v\n",
		name, help, kind, value)
}
