//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/testdata/jvmtest"
)

// fleetPlan is how many JVMs there are at a time, how many of them end each minute (and as many come), and for how
// long the test runs.
type fleetPlan struct {
	jvms, perMinute int
	duration        time.Duration
}

// parseFleet reads GOPROF_FLEET: "50,10,20m".
func parseFleet(t *testing.T) fleetPlan {
	t.Helper()
	text := os.Getenv("GOPROF_FLEET")
	if text == "" {
		t.Skip("takes long: GOPROF_FLEET=50,10,20m sets JVMs at a time, how many come and go in a minute, and for how long")
	}
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		t.Fatalf("GOPROF_FLEET=%q: want JVMs,PER MINUTE,TIME", text)
	}
	var p fleetPlan
	var err [3]error
	p.jvms, err[0] = strconv.Atoi(parts[0])
	p.perMinute, err[1] = strconv.Atoi(parts[1])
	p.duration, err[2] = time.ParseDuration(parts[2])
	if err != [3]error{} || p.jvms < 1 || p.perMinute < 1 {
		t.Fatalf("GOPROF_FLEET=%q: %v", text, err)
	}
	return p
}

// fleetMember is one JVM of the test.
type fleetMember struct {
	*jvmtest.JVM
	began, ended time.Time
	first        time.Time // when its first file came
	cpu          time.Duration
}

// end ends the JVM.
func (m *fleetMember) end(now time.Time) {
	m.cpu = sampler.ProcessCPU(m.PID)
	m.Kill()
	m.ended = now
}

// fleetEvery is the interval of batches. fleetCPU and fleetMemory are the agent's bounds: if ten JVMs come in a
// minute, that costs ten attachments.
const (
	fleetEvery  = 5 * time.Second
	fleetCPU    = 0.05
	fleetMemory = 200_000_000
)

// TestFleet: many small JVMs come and go. The agent sees all of them, leaves none stopped, and keeps within its
// bounds.
func TestFleet(t *testing.T) {
	plan := parseFleet(t)
	jdk := jvmtest.JDKs(t)[0]
	port := freePort(t)
	began := time.Now()
	a := startAgent(t, "--every", fleetEvery.String(), "--max-cpu", fmt.Sprintf("%v%%", 100*fleetCPU),
		"--max-memory", strconv.Itoa(fleetMemory), "--listen", port, "--match", "main=Guest")
	var all, running []*fleetMember
	start := func() {
		m := &fleetMember{began: time.Now()}
		m.JVM = jvmtest.Start(t, jdk, "truth.Guest", "-Xmx16m", "-Xss256k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
		all, running = append(all, m), append(running, m)
	}
	for range plan.jvms {
		start()
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	most := 0.0
	for next := time.Now(); time.Since(began) < plan.duration; <-tick.C {
		a.noteFirst(t, running)
		most = max(most, scrape(t, port)["goprof_agent_resident_bytes"])
		if now := time.Now(); now.After(next) {
			next = now.Add(time.Minute / time.Duration(plan.perMinute))
			running[0].end(now)
			running = running[1:]
			start()
		}
	}
	a.noteFirst(t, running)
	passed, at := time.Since(began), scrape(t, port)
	for _, m := range running {
		m.cpu = sampler.ProcessCPU(m.PID)
	}
	a.end(t)
	for _, m := range running {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.PID))
		if err != nil || strings.Contains(string(text), ") T ") || strings.Contains(string(text), ") t ") {
			t.Errorf("process %d is not as it was: %.60s, %v", m.PID, text, err)
		}
	}
	judgeFleet(t, all[:plan.jvms], a, "there at the beginning")
	judgeFleet(t, all[plan.jvms:], a, "that came later")
	share := (at["goprof_agent_cpu_seconds_total"] + at["goprof_agent_pause_seconds_total"]) / passed.Seconds() /
		float64(runtime.NumCPU())
	if share > 1.1*fleetCPU {
		t.Errorf("the agent took %.2f %% of the host", 100*share)
	}
	if most > fleetMemory {
		t.Errorf("the agent took up to %.0f bytes", most)
	}
	used := -at["goprof_agent_unwatched_cpu_seconds_total"]
	for _, m := range all {
		used += m.cpu.Seconds()
	}
	t.Logf("%d JVMs in %.0f s: %.2f %% of %d CPUs, at most %.0f MB, %v attachments, %v let go for memory, %v samples "+
		"of %.1f s of CPU time, %v lost",
		len(all), passed.Seconds(), 100*share, runtime.NumCPU(), most/1e6, at["goprof_agent_attached_total"],
		at["goprof_agent_evicted_total"], at["goprof_agent_samples_total"], used, at["goprof_agent_samples_lost_total"])
}

// noteFirst notes the JVMs whose first file has come.
func (a *liveAgent) noteFirst(t *testing.T, running []*fleetMember) {
	for _, m := range running {
		if m.first.IsZero() && len(a.filesOf(t, m.PID)) > 0 {
			m.first = time.Now()
		}
	}
}

// judgeFleet demands files of each JVM that was there for long enough.
func judgeFleet(t *testing.T, all []*fleetMember, a *liveAgent, which string) {
	if len(all) == 0 {
		return
	}
	var took []time.Duration
	for _, m := range all {
		switch {
		case !m.first.IsZero():
			took = append(took, m.first.Sub(m.began))
		case len(a.filesOf(t, m.PID)) == 0 && !m.ended.IsZero() && m.ended.Sub(m.began) > time.Minute:
			t.Errorf("process %d was there for %v, and has no file\n%s", m.PID, m.ended.Sub(m.began), &a.log)
		}
	}
	if len(took) == 0 {
		t.Errorf("no JVM was seen of those %s\n%s", which, &a.log)
		return
	}
	slices.Sort(took)
	within := len(took)
	for i, d := range took {
		if d > 2*fleetEvery {
			within = i
			break
		}
	}
	t.Logf("%d of %d JVMs %s have files; the first one came after %v (median), %v (most); within two intervals for %d",
		len(took), len(all), which, took[len(took)/2].Round(time.Millisecond),
		took[len(took)-1].Round(time.Millisecond), within)
}

// freePort is a port that the kernel gives only to a program that asks for it by number (ip_local_port_range begins
// at 32768). Other programs open many ports before the agent listens there.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// scrape reads an agent's metrics without labels. The result is empty if there is no agent yet.
func scrape(t *testing.T, at string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	answer, err := http.Get("http://" + at + "/metrics")
	if err != nil {
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error(err)
		}
		return all
	}
	defer answer.Body.Close()
	in := bufio.NewScanner(io.LimitReader(answer.Body, 1<<20))
	for in.Scan() {
		at := max(strings.LastIndexByte(in.Text(), ' '), 0) // a label may have a space
		if n, err := strconv.ParseFloat(strings.TrimSpace(in.Text()[at:]), 64); err == nil {
			all[in.Text()[:at]] = n
		}
	}
	return all
}
