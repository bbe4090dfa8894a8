//go:build linux

package hosttext

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"goprof/diagnose"
)

var listed = []diagnose.JVM{
	{PID: 7, UID: 1000, User: "ann", Version: "17.0.15+6", Vendor: "Debian", Collector: "G1", Uptime: 200 * time.Second,
		Threads: 33, CPU: 1500 * time.Millisecond, Share: 1.507, Main: "pkg.Main", Options: []string{"-Xmx1g"},
		Args: []string{"--password=geheim"}},
	{PID: 8, InnerPID: 1, Container: "0123456789ab", User: "0", Uptime: 49 * time.Hour, Threads: 2,
		Main: "/x/\x1b[2J\u202eapp\tb\n.jar\xff",
		Problem: &diagnose.Cause{Class: diagnose.Forbidden, Name: "other-user", Why: "it is an\x1bother's",
			Remedy: "sudo goprof list"}},
	{PID: 9, User: "0", Uptime: 3 * time.Second, Threads: 2,
		Problem: &diagnose.Cause{Class: diagnose.Forbidden, Name: "other-user", Why: "it is an\x1bother's",
			Remedy: "sudo goprof list"}},
}

func TestListText(t *testing.T) {
	var b strings.Builder
	if err := List(&b, listed, false, 0); err != nil {
		t.Fatal(err)
	}
	want := `PID  IN CONTAINER  CONTAINER     USER  VERSION    VENDOR  GC  UPTIME  THREADS  CPU   MAIN CLASS
7    -             -             ann   17.0.15+6  Debian  G1  3m20s   33       151%  pkg.Main
8    1             0123456789ab  0     -          -       -   2d1h    2        0%    /x/?[2J?app?b?.jar?
9    -             -             0     -          -       -   3s      2        0%    -

8, 9 cannot be recorded, each because it is an?other's
try: sudo goprof list
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := List(&b, listed[:1], true, 0); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.HasSuffix(got, "  -Xmx1g pkg.Main --password=geheim\n") ||
		strings.Contains(got, "IN CONTAINER") {
		t.Error(got)
	}
}

// TestListCut: on a terminal a line ends at its edge. What cannot be recorded, and why, is never cut.
func TestListCut(t *testing.T) {
	var b strings.Builder
	if err := List(&b, listed, true, 60); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if want := "7    -             -             ann   17.0.15+6  Debian  G…"; lines[1] != want {
		t.Errorf("got %q", lines[1])
	}
	if want := "(cut to the terminal: --wide shows all)"; lines[4] != want {
		t.Errorf("got %q", lines[4])
	}
	if want := "8, 9 cannot be recorded, each because it is an?other's"; lines[6] != want {
		t.Errorf("got %q", lines[6])
	}
}

// TestListSecrets: goprof shows arguments and options only to a user that asks for them.
func TestListSecrets(t *testing.T) {
	for _, withArgs := range []bool{false, true} {
		var text, data strings.Builder
		if err := List(&text, listed, withArgs, 0); err != nil {
			t.Fatal(err)
		}
		if err := ListJSON(&data, listed, withArgs); err != nil {
			t.Fatal(err)
		}
		for _, out := range []string{text.String(), data.String()} {
			if strings.Contains(out, "geheim") != withArgs || strings.Contains(out, "-Xmx1g") != withArgs {
				t.Errorf("with arguments %t:\n%s", withArgs, out)
			}
		}
	}
}

func TestListJSON(t *testing.T) {
	var b strings.Builder
	if err := ListJSON(&b, listed, false); err != nil {
		t.Fatal(err)
	}
	var got struct {
		JVMs []struct {
			PID        int `json:"pid"`
			Inner      int `json:"inner_pid"`
			User, Main string
			CPUPercent float64 `json:"cpu_percent"`
			Uptime     float64 `json:"uptime_seconds"`
			Problem    *struct {
				Name string
				Code int `json:"exit_code"`
			}
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || len(got.JVMs) != 3 {
		t.Fatal(err, b.String())
	}
	if j := got.JVMs[0]; j.PID != 7 || j.Problem != nil || j.CPUPercent < 150 || j.Uptime != 200 || j.Main != "pkg.Main" {
		t.Errorf("%+v", j)
	}
	if j := got.JVMs[1]; j.Inner != 1 || j.Problem == nil || j.Problem.Name != "other-user" || j.Problem.Code != 5 {
		t.Errorf("%+v", j)
	}
	b.Reset()
	if err := ListJSON(&b, nil, false); err != nil || strings.Contains(b.String(), "null") {
		t.Error(err, b.String())
	}
}
