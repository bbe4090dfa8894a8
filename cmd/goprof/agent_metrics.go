//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"goprof/output/ship"
	"goprof/sampler/agent"
)

// serveMetrics answers at a listener until the function that it returns is called. It has two pages and takes nothing.
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

// writeMetrics writes what all parts of an agent count.
func writeMetrics(w io.Writer, a *agent.Agent, h *agent.Host, out *takers) {
	a.Metrics().Write(w)
	g := h.Group()
	for _, m := range []struct {
		name, kind, help string
		value            any
	}{
		{"cpu_visits_total", "counter", "Visits of CPUs.", g.Visits},
		{"cpu_visits_met_total", "counter", "Visits that met a thread of a recorded JVM.", g.Met},
		{"cpu_visits_others_total", "counter", "Visits that met another process.", g.Others},
		{"sampling_cpu_seconds_total", "counter", "CPU time of the sampling thread.", g.CPU.Seconds()},
	} {
		oneMetric(w, m.name, m.kind, m.help, m.value)
	}
	if out.servers != nil {
		writeServers(w, out.servers.Stats())
	}
	if out.files == nil {
		return
	}
	st := out.files.Stats()
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

// writeServers writes what became of batches for each server.
func writeServers(w io.Writer, all []ship.Stats) {
	for _, m := range []struct {
		name, kind, help string
		value            func(*ship.Stats) int64
	}{
		{"offered", "counter", "Batches for a server.", func(s *ship.Stats) int64 { return s.Offered.Batches }},
		{"recovered", "counter", "Batches that an earlier goprof has left.",
			func(s *ship.Stats) int64 { return s.Recovered.Batches }},
		{"sent", "counter", "Batches that a server has.", func(s *ship.Stats) int64 { return s.Sent.Batches }},
		{"refused", "counter", "Batches that a server will never take.",
			func(s *ship.Stats) int64 { return s.Refused.Batches }},
		{"dropped", "counter", "Batches that were dropped for want of room.",
			func(s *ship.Stats) int64 { return s.Dropped.Batches }},
		{"retries", "counter", "Attempts that failed and are made again.", func(s *ship.Stats) int64 { return s.Retries }},
		{"sent_bytes", "counter", "What was sent.", func(s *ship.Stats) int64 { return s.SentBytes }},
		{"queued", "gauge", "Batches that wait.", func(s *ship.Stats) int64 { return s.Queued.Batches }},
		{"queued_bytes", "gauge", "What they take.", func(s *ship.Stats) int64 { return s.QueuedBytes }},
	} {
		name := "server_" + m.name
		if m.kind == "counter" {
			name += "_total"
		}
		fmt.Fprintf(w, "# HELP goprof_agent_%s %s\n# TYPE goprof_agent_%[1]s %[3]s\n", name, m.help, m.kind)
		for i := range all {
			fmt.Fprintf(w, "goprof_agent_%s{server=%q} %d\n", name, all[i].Name, m.value(&all[i]))
		}
	}
}

func oneMetric(w io.Writer, name, kind, help string, value any) {
	fmt.Fprintf(w, "# HELP goprof_agent_%s %s\n# TYPE goprof_agent_%[1]s %[3]s\n", name, help, kind)
	fmt.Fprintf(w, "goprof_agent_%s %v\n", name, value)
}
