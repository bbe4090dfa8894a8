package engines

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "github.com/google/pprof/profile"

	"goprof/output/parca"
	"goprof/output/ship/wire"
	"goprof/profile"
	"goprof/testdata/shipped"
)

// TestParca: Parca's own server receives samples by gRPC and HTTP. It answers queries with the stacks and
// counts that were sent. The Go module proxy has no Parca, so the test takes a program that was built elsewhere.
func TestParca(t *testing.T) {
	program := os.Getenv("GOPROF_PARCA")
	if program == "" {
		t.Skip("Parca's server cannot be had as a Go module: GOPROF_PARCA names one that was built from its source")
	}
	for _, way := range []string{"grpc", "http"} {
		t.Run(way, func(t *testing.T) {
			address := startParca(t, program)
			to, err := parca.New(wire.Options{URL: way + "://" + address})
			if err != nil {
				t.Fatal(err)
			}
			samples := shipped.Samples(500, false)
			deliver(t, samples, to)
			looks := shipped.Collapsed(t, samples, profile.Samples)
			for stack := range looks {
				looks[stack] *= int64(shipped.Interval) // Parca answers in CPU time: each sample stands for a period
			}
			shipped.Same(t, "samples", stacksIn(t, address, "samples"), looks)
			shipped.Same(t, "cpu", stacksIn(t, address, "cpu"), shipped.Collapsed(t, samples, profile.CPUTime))
		})
	}
}

// startParca starts a server that keeps what it gets in memory, and asks no other machine.
func startParca(t *testing.T, program string) (address string) {
	t.Helper()
	dir, address := t.TempDir(), free(t)
	config := filepath.Join(dir, "parca.yaml")
	text := fmt.Sprintf("object_storage: {bucket: {type: FILESYSTEM, config: {directory: %q}}}\n", dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server(t, address, program, "--config-path", config, "--http-address", address, "--storage-path", dir,
		"--debuginfo-cache-dir", dir, "--debuginfod-upstream-servers", "http://127.0.0.1:1",
		"--profile-share-server", "127.0.0.1:1")
	return address
}

// stacksIn asks a Parca server for all stacks of one type of sample.
func stacksIn(t *testing.T, address, sampleType string) shipped.Counts {
	t.Helper()
	var list struct {
		Types []struct {
			Name, SampleType, SampleUnit, PeriodType, PeriodUnit string
			Delta                                                bool
		}
	}
	ask(t, address, "types", nil, &list)
	query := ""
	for _, of := range list.Types {
		name := strings.Join([]string{of.Name, of.SampleType, of.SampleUnit, of.PeriodType, of.PeriodUnit}, ":")
		if of.Delta {
			name += ":delta"
		}
		if of.SampleType == sampleType {
			query = name
		}
	}
	if query == "" {
		t.Fatalf("no %s among %+v", sampleType, list.Types)
	}
	var answer struct{ Pprof []byte }
	ask(t, address, "query", url.Values{"mode": {"MODE_MERGE"}, "reportType": {"REPORT_TYPE_PPROF"},
		"merge.query": {query + "{}"}, "merge.start": {time.Unix(0, 0).UTC().Format(time.RFC3339)},
		"merge.end": {time.Now().AddDate(10, 0, 0).UTC().Format(time.RFC3339)}}, &answer)
	p, err := pb.ParseData(answer.Pprof)
	if err != nil || len(p.SampleType) != 1 {
		t.Fatalf("%v, %v", p, err)
	}
	return shipped.PProf(t, answer.Pprof, p.SampleType[0].Type)
}

// ask asks the server's gateway, and decodes what it answers.
func ask(t *testing.T, address, what string, query url.Values, to any) {
	t.Helper()
	answer, err := http.Get("http://" + address + "/api/profiles/" + what + "?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", answer.Status, text)
	}
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
