// Package engines holds proofs with servers of others: what they store of what goprof sends has the stacks and
// counts of goprof's own collapsed text. `make test-engines` builds the servers and runs the proofs. The package is
// a module of its own, so that goprof's go.mod has none of the servers' modules.
package engines

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"goprof/output/otlp"
	"goprof/output/ship"
	"goprof/output/ship/wire"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/testdata/shipped"
)

// free is an address at which no program listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// server starts a program, which ends with the test, and waits until it listens.
func server(t *testing.T, listens string, name string, args ...string) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s said:\n%s", name, said.String())
		}
	})
	for end := time.Now().Add(time.Minute); ; {
		c, err := net.Dial("tcp", listens)
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-ended:
			t.Fatalf("%s ended: %s", name, said.String())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not listen at %s", name, listens)
		}
	}
}

// built is a program of this module, compiled.
func built(t *testing.T, pkg string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(pkg))
	if out, err := exec.Command("go", "build", "-o", to, pkg).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return to
}

// deliver sends samples in batches of a hundred, as a shipper does.
func deliver(t *testing.T, samples []*profile.Sample, to ship.Destination) {
	t.Helper()
	s, err := ship.New(ship.Options{Spool: t.TempDir(), Tell: func(text string) { t.Log(text) }}, to)
	if err != nil {
		t.Fatal(err)
	}
	for len(samples) > 0 {
		n := min(len(samples), 100)
		s.Offer(shipped.Batch(samples[:n], batch.GatherOptions{}))
		samples = samples[n:]
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats()[0]; st.Refused.Batches+st.Dropped.Batches+st.Rejected > 0 || st.Sent != st.Offered {
		t.Fatalf("%+v", st)
	}
}

// TestCollector: an OpenTelemetry collector receives samples by gRPC and by HTTP. Its file exporter writes what was
// sent.
func TestCollector(t *testing.T) {
	program := built(t, "./collector")
	for _, way := range []string{"grpc", "http"} {
		for _, wall := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, wall %v", way, wall), func(t *testing.T) {
				dir, address := t.TempDir(), free(t)
				file := filepath.Join(dir, "profiles")
				config := filepath.Join(dir, "config.yaml")
				text := fmt.Sprintf(`
receivers: {otlp: {protocols: {%s: {endpoint: "%s"}}}}
exporters: {file: {path: "%s", format: proto}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [otlp], exporters: [file]}}
`, way, address, file)
				if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				server(t, address, program, "--config", config, "--feature-gates=service.profilesSupport")
				to, err := otlp.New(wire.Options{URL: way + "://" + address})
				if err != nil {
					t.Fatal(err)
				}
				samples := shipped.Samples(500, wall)
				deliver(t, samples, to)
				counts, second := stored(t, file, "samples", 500), "cpu"
				shipped.Same(t, "samples", counts, shipped.Collapsed(t, samples, profile.Samples))
				weight := profile.CPUTime
				if wall {
					second, weight = "wall", profile.WallTime
				}
				shipped.Same(t, second, stored(t, file, second, 1), shipped.Collapsed(t, samples, weight))
			})
		}
	}
}

// stored are the counts in the collector's file, as soon as there are at least so many: the exporter writes each
// second.
func stored(t *testing.T, file, sampleType string, atLeast int64) (all shipped.Counts) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		data, _ := os.ReadFile(file)
		all = make(shipped.Counts)
		total := int64(0)
		for len(data) > 4 {
			size := int(binary.BigEndian.Uint32(data))
			if size > len(data)-4 {
				break
			}
			for stack, n := range shipped.OTLP(t, shipped.ParseOTLP(t, data[4:4+size]), sampleType) {
				all[stack] += n
				total += n
			}
			data = data[4+size:]
		}
		if total >= atLeast {
			return all
		}
	}
	return all
}
