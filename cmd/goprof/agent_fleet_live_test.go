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

	"goprof/agent"
	"goprof/sampler/threads"
	"goprof/testdata/jvmtest"
)

// fleetPlan is how many JVMs there are at a time, how many of them end each minute (and as many come), for how long the
// test runs, and for how many milliseconds of each second a JVM works.
type fleetPlan struct {
	jvms, perMinute int
	duration        time.Duration
	works           int
}

// every is the interval of batches: about two samples of a JVM are due in it.
func (p *fleetPlan) every() time.Duration { return 100 * time.Second / time.Duration(p.works) }

// most is the agent's bound of memory: what it has unless it is told otherwise, and half of that for up to fifty JVMs.
func (p *fleetPlan) most() int64 {
	most := agent.Default().MaxMemory
	if p.jvms <= 50 {
		most /= 2
	}
	return most
}

// parseFleet reads GOPROF_FLEET: "50,10,20m", or "200,5,10m,2".
func parseFleet(t *testing.T) fleetPlan {
	t.Helper()
	text := os.Getenv("GOPROF_FLEET")
	if text == "" {
		t.Skip("takes long: GOPROF_FLEET=50,10,20m sets JVMs at a time, how many come and go in a minute, and for how long")
	}
	parts := strings.Split(text, ",")
	if len(parts) == 3 {
		parts = append(parts, "20")
	}
	if len(parts) != 4 {
		t.Fatalf("GOPROF_FLEET=%q: want JVMs,PER MINUTE,TIME,MS OF EACH SECOND", text)
	}
	var p fleetPlan
	var err [4]error
	p.jvms, err[0] = strconv.Atoi(parts[0])
	p.perMinute, err[1] = strconv.Atoi(parts[1])
	p.duration, err[2] = time.ParseDuration(parts[2])
	p.works, err[3] = strconv.Atoi(parts[3])
	if err != [4]error{} || p.jvms < 1 || p.perMinute < 1 || p.works < 1 || p.works > 100 {
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
	m.cpu = threads.ProcessCPU(m.PID)
	m.Kill()
	m.ended = now
}

// fleetCPU is the agent's bound: if ten JVMs come in a minute, that costs ten attachments.
const fleetCPU = 0.05

// TestFleet: many small JVMs come and go. The agent sees all of them, leaves none stopped, and keeps within its
// bounds.
func TestFleet(t *testing.T) {
	plan := parseFleet(t)
	jdk := jvmtest.JDKs(t)[0]
	port := freePort(t)
	began := time.Now()
	a := startAgent(t, "--every", plan.every().String(), "--max-cpu", fmt.Sprintf("%v%%", 100*fleetCPU),
		"--max-memory", strconv.FormatInt(plan.most(), 10), "--listen", port, "--match", "main=Guest")
	var all, running []*fleetMember
	start := func() {
		m := &fleetMember{began: time.Now()}
		m.JVM = jvmtest.Start(t, jdk, "truth.Guest", "-Xmx16m", "-Xss256k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"--", strconv.Itoa(plan.works))
		all, running = append(all, m), append(running, m)
	}
	for range plan.jvms {
		start()
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var most, half, recorded float64 // half: the most memory of the first half
	for next := time.Now(); time.Since(began) < plan.duration; <-tick.C {
		a.noteFirst(t, running)
		at := scrape(t, port)
		most = max(most, at["goprof_agent_resident_bytes"])
		recorded = max(recorded, at[`goprof_agent_jvms{state="recorded"}`])
		if time.Since(began) < plan.duration/2 {
			half = most
		}
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
		m.cpu = threads.ProcessCPU(m.PID)
	}
	a.end(t)
	for _, m := range running {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.PID))
		if err != nil || strings.Contains(string(text), ") T ") || strings.Contains(string(text), ") t ") {
			t.Errorf("process %d is not as it was: %.60s, %v", m.PID, text, err)
		}
	}
	judgeFleet(t, all[:plan.jvms], a, plan.every(), "there at the beginning")
	judgeFleet(t, all[plan.jvms:], a, plan.every(), "that came later")
	share := (at["goprof_agent_cpu_seconds_total"] + at["goprof_agent_pause_seconds_total"]) / passed.Seconds() /
		float64(runtime.NumCPU())
	if share > 1.1*fleetCPU {
		t.Errorf("the agent took %.2f %% of the host", 100*share)
	}
	if n := at[`goprof_agent_jvms{state="unsupported"}`]; n > 0 {
		t.Errorf("%v JVMs are not recorded:\n%s", n, &a.log)
	}
	if most > float64(plan.most()) {
		t.Errorf("the agent took up to %.0f bytes", most)
	}
	used := -at["goprof_agent_unwatched_cpu_seconds_total"]
	for _, m := range all {
		used += m.cpu.Seconds()
	}
	t.Logf("%d JVMs in %.0f s, up to %.0f recorded at a time: %.2f %% of %d CPUs, at most %.0f MB (%.0f in the first "+
		"half), %v attachments, %v let go for memory, %v samples of %.1f s of CPU time, %v lost",
		len(all), passed.Seconds(), recorded, 100*share, runtime.NumCPU(), most/1e6, half/1e6,
		at["goprof_agent_attached_total"],
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

// judgeFleet demands files of each JVM that was there for long enough: twelve intervals.
func judgeFleet(t *testing.T, all []*fleetMember, a *liveAgent, every time.Duration, which string) {
	if len(all) == 0 {
		return
	}
	var took []time.Duration
	for _, m := range all {
		switch {
		case !m.first.IsZero():
			took = append(took, m.first.Sub(m.began))
		case len(a.filesOf(t, m.PID)) == 0 && !m.ended.IsZero() && m.ended.Sub(m.began) > 12*every:
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
		if d > 2*every {
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
