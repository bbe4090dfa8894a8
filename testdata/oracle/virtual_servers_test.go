//go:build linux

package oracle

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/perf"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// servers is where scripts/servers.sh has put servers.
var servers = os.Getenv("GOPROF_SERVERS")

// TestServers records servers that others wrote, whose requests virtual threads answer, under load from this machine:
// at least 98 of 100 stacks of virtual threads are whole, by either engine. make test-servers fetches them, and runs
// it with GOPROF_SERVERS.
func TestServers(t *testing.T) {
	if servers == "" {
		t.Skip("needs servers of others, which Maven fetches: make test-servers runs it")
	}
	virtualJDKs(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, name := range []string{"helidon", "jetty"} {
			for _, connections := range []int{20, 200} {
				t.Run(fmt.Sprint(name, "-", connections), func(t *testing.T) {
					dir := filepath.Join(servers, name)
					pid := startServer(t, jdk, []string{"-cp", textIn(t, dir, "classpath"), textIn(t, dir, "main")}, connections)
					for _, engine := range []session.EngineName{session.PtraceEngine, session.PerfEngine} {
						if engine == session.PerfEngine && perf.TryWide(0) != nil {
							continue // it needs Linux 5.5, CAP_BPF and CAP_PERFMON
						}
						recordServer(t, pid, engine)
					}
				})
			}
		}
	})
}

func recordServer(t *testing.T, pid int, engine session.EngineName) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	p, sum, err := attach(t, pid).Record(ctx,
		session.RecordOptions{Interval: 2 * time.Millisecond, Threads: true, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	var whole, cut, unknown int64
	p.Each(func(frames []profile.Frame, n int64) {
		switch label := frames[0].Func.Name; {
		case !strings.Contains(label, "virtual #"):
		case strings.HasPrefix(frames[1].Func.Name, "[truncated"):
			cut += n
		default:
			whole += n
			if strings.Contains(label, "#?") {
				unknown += n
			}
			if root := frames[1].Func.Name; root != "jdk.internal.vm.Continuation.enter" {
				t.Errorf("%d stacks do not begin at their root: %s", n, pathOf(frames))
			}
		}
	})
	t.Logf("%s: %d whole, %d cut, %d of an unknown thread; pauses p50 %v, p99 %v", engine, whole, cut, unknown,
		sum.Pauses.P50, sum.Pauses.P99)
	if whole < 20 || cut*50 > whole+cut {
		t.Errorf("%s: %d of %d stacks of virtual threads are cut", engine, cut, whole+cut)
	}
}

// textIn reads what scripts/servers.sh has written.
func textIn(t *testing.T, dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// startServer starts a server and its clients, and lets them work for a while.
func startServer(t *testing.T, jdk jvmtest.JDK, args []string, connections int) int {
	t.Helper()
	java := jdk.Tool("java")
	server, ready := startWorking(t, exec.Command(java, args...))
	var port int
	if _, err := fmt.Sscanf(ready, "READY %d", &port); err != nil {
		t.Fatalf("%q: %v", ready, err)
	}
	if connections > 0 {
		startWorking(t, exec.Command(java, "-cp", filepath.Join(servers, "tomcat", "classes"), "servers.Clients",
			fmt.Sprint(port), fmt.Sprint(connections)))
	}
	time.Sleep(5 * time.Second) // most is compiled then
	return server.Process.Pid
}

// startWorking starts a program and returns its first line. It lives until the test ends.
func startWorking(t *testing.T, cmd *exec.Cmd) (*exec.Cmd, string) {
	t.Helper()
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // it ends with us
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%s is not ready: %v", cmd.Path, err)
		}
		if strings.HasPrefix(line, "READY") {
			go io.Copy(io.Discard, r)
			return cmd, line
		}
	}
}
