//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"goprof/agent"
	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/outlets"
	"goprof/process"
)

// serveMetrics serves two pages until the returned function is called. It accepts no data.
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

func writeMetrics(w io.Writer, a *agent.Agent, h *agent.ThisHost, others *agent.Others, out *outlets.Outlets) {
	a.Metrics().Write(w)
	g := h.Group()
	tables, most := process.TableBytes()
	agent.WriteMetrics(w,
		agent.Counter("cpu_visits_total", "Visits of CPUs.", g.Visits),
		agent.Counter("cpu_visits_met_total", "Visits that met a thread of a recorded JVM.", g.Met),
		agent.Counter("cpu_visits_others_total", "Visits that met another process.", g.Others),
		agent.Counter("cpu_visits_missed_total", "Visits that were left out because their moment had passed long ago.",
			g.Missed),
		agent.Gauge("cpus_unsampled", "CPUs that are on and have no samples of JVMs: the kernel refused the events.",
			g.Unsampled),
		agent.Gauge("library_bytes", "Symbols and unwind information of libraries, as they are paid for.",
			tables),
		agent.Gauge("library_bytes_max", "The most of that; a JVM for which there is no room is refused as tables-full.",
			most),
		agent.Counter("sampling_cpu_seconds_total", "CPU time of the sampling thread and its preempters.", g.CPU.Seconds()))
	if others != nil {
		samples, lost := others.Counts()
		agent.WriteMetrics(w,
			agent.Counter("host_samples_total", "Samples of processes that are not recorded as JVMs.", samples),
			agent.Counter("host_records_lost_total", "Records of these for which the kernel had no room.", lost),
			agent.Gauge("host_cpus_unsampled", "CPUs that are on and have no samples of these.", others.Unsampled()))
	}
	out.Metrics(w)
}

// listen opens the port for metrics. An agent that takes over listens on the same port as the old agent (SO_REUSEPORT,
// which the kernel permits to the same user). Two unrelated agents must not share a port. So an agent that does not
// take over first tries whether the port is free.
func listen(at string, takesOver bool) (net.Listener, error) {
	if !takesOver {
		alone, err := net.Listen("tcp", at)
		if err != nil {
			return nil, cannotListen(at, err)
		}
		at = alone.Addr().String()
		alone.Close()
	}
	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var refused error
		err := c.Control(func(fd uintptr) {
			refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, refused)
	}}
	l, err := shared.Listen(context.Background(), "tcp", at)
	if err != nil {
		return nil, cannotListen(at, err)
	}
	return l, nil
}

func cannotListen(at string, err error) error {
	return &exit.Error{Code: exit.General, What: "cannot listen at " + at, Why: err.Error(),
		Remedy: "another port, or no --listen"}
}
