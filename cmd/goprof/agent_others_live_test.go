//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/output/pprof"
	"goprof/profile"
	"goprof/profile/resource"
	"goprof/sampler/perf"
	"goprof/testdata/ctest"
	"goprof/testdata/shipped"
)

// twoShares uses three quarters of its CPU time in heavy and one in light. Its turns have different lengths, so that no
// clock keeps time with them. work asks for its frame: gcc makes none for a function that calls none, with any flags.
const twoShares = `
static volatile unsigned long sum;
static void *volatile frame;
__attribute__((noinline)) static void work(long n) {
	frame = __builtin_frame_address(0);
	for (long i = 0; i < n; i++) sum += i;
}
__attribute__((noinline)) static void heavy(long n) { work(3 * n); sum++; }
__attribute__((noinline)) static void light(long n) { work(n); sum++; }
int main(void) {
	unsigned r = 1;
	ready();
	for (;;) {
		r = r * 1103515245 + 12345;
		long n = 20000 + (r >> 16) % 200000;
		heavy(n);
		light(n);
	}
}`

// attributesSeen are the attributes of messages that a server got, by service.
type attributesSeen struct {
	mu        sync.Mutex
	byService map[string]map[string]string
}

func (a *attributesSeen) take(t *testing.T, r *http.Request) {
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Error(err)
		return
	}
	message, err := io.ReadAll(z)
	if err != nil {
		t.Error(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, of := range shipped.ParseOTLP(t, message).ResourceProfiles {
		all := map[string]string{}
		for _, one := range of.Resource.Attributes {
			all[one.Key] = one.Value.GetStringValue()
		}
		a.byService[all[resource.ServiceName]] = all
	}
}

// TestWholeHost: an agent sees a program that is no JVM, with its functions in the right shares, below main and with
// the thread's root, and sends it with its kind of runtime.
func TestWholeHost(t *testing.T) {
	if err := perf.TryWide(0); err != nil {
		t.Skipf("this machine does not permit perf events of CPUs: %v", err)
	}
	const name = "two-shares"
	bin := filepath.Join(t.TempDir(), name) // by which its processes are known
	made := ctest.Compile(t, twoShares, "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
	if err := os.Rename(made, bin); err != nil {
		t.Fatal(err)
	}
	p := ctest.Start(t, bin)
	seen := &attributesSeen{byService: map[string]map[string]string{}}
	at := shipped.Listen(t, func(_ http.ResponseWriter, r *http.Request) { seen.take(t, r) })
	a := startAgent(t, "--whole-host", "--rate", "199", "--otlp", "http://"+at, "--match", "name=none-of-these")
	const enough = 400
	var heavy, light, whole, others int64
	for end := time.Now().Add(agentLimit); heavy+light < enough; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d samples of heavy, %d of light, %d others\n%s", heavy, light, others, &a.log)
		}
		heavy, light, whole, others = 0, 0, 0, 0
		for _, file := range a.filesOf(t, p.PID) {
			eachSample(t, file, func(names string, truncated profile.Reason, n int64) {
				switch {
				case strings.Contains(names, " heavy main "):
					heavy += n
				case strings.Contains(names, " light main "):
					light += n
				default:
					others += n
				}
				if truncated == profile.Whole {
					whole += n
				}
			})
		}
	}
	a.end(t)
	if !strings.Contains(a.log.String(), "goprof: other processes: ") {
		t.Errorf("at its end it says\n%s", &a.log)
	}
	// 0.75, and chance moves it by 0.022 with 400 samples.
	if share := float64(heavy) / float64(heavy+light); share < 0.6 || share > 0.9 {
		t.Errorf("heavy has %.2f of %d samples", share, heavy+light)
	}
	if others > (heavy+light)/2 || whole < (heavy+light)/2 {
		t.Errorf("%d samples of heavy and light, %d others, %d that are whole", heavy+light, others, whole)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if got := seen.byService[name]; got[resource.RuntimeName] != "native" || got[resource.ProcessExecutable] != name {
		t.Errorf("%v", got)
	}
	if got := seen.byService["goprof"]; got != nil && got[resource.RuntimeName] != "go" {
		t.Errorf("goprof itself: %v", got)
	}
}

// eachSample visits the samples of a file, with the names of their frames, leaf first.
func eachSample(t *testing.T, file string, visit func(names string, truncated profile.Reason, n int64)) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := pprof.Read(bytes.NewReader(data))
	if err == nil {
		err = f.Each(func(s *profile.Sample, values []int64) error {
			names := " "
			for _, frame := range s.Stack.Frames {
				names += frame.Func.Name + " "
			}
			visit(names, s.Stack.Truncated, values[0])
			return nil
		})
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestWholeHostRefused: without the right to watch CPUs the agent says what is missing, and ends.
func TestWholeHostRefused(t *testing.T) {
	ctest.NeedCPU(t)
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "goprof", "agent", "--whole-host",
		"--files", t.TempDir())
	if out, err := exec.Command("unshare", "--pid", "--fork", "true").CombinedOutput(); err != nil {
		t.Skipf("no PID namespace can be made here: %s", out)
	}
	told, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != int(exit.NotPermitted) ||
		!strings.Contains(string(told), "cannot sample the other processes of this host: ") {
		t.Errorf("%d\n%s", code, told)
	}
}
