//go:build linux

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"goprof/cmd/goprof/exit"
	"goprof/diagnose"
)

var examined = diagnose.Report{
	Checks: []diagnose.Check{
		{Name: "cpu", Verdict: diagnose.OK, Text: "amd64"},
		{Name: "capabilities", Verdict: diagnose.Warn, Text: "none\x1b[2J", Remedy: "sudo\ngoprof"},
		{Name: "JVM", Verdict: diagnose.Fail, Text: "none", Remedy: "goprof list"},
	},
	Cause: &diagnose.Cause{Class: diagnose.NotJVM, Name: "not-java", Why: "none", Remedy: "goprof list"},
}

func TestDoctorText(t *testing.T) {
	var b strings.Builder
	if err := doctorText(&b, &examined); err != nil {
		t.Fatal(err)
	}
	want := `ok    cpu           amd64
warn  capabilities  none?[2J
                    try: sudo?goprof
fail  JVM           none
                    try: goprof list
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestDoctorJSON(t *testing.T) {
	var b strings.Builder
	if err := doctorJSON(&b, 7, &examined); err != nil {
		t.Fatal(err)
	}
	var got doctorReport
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Works || got.Code != 4 || got.PID != 7 || got.Problem.Name != "not-java" || len(got.Checks) != 3 ||
		got.Checks[1].Verdict != "warn" {
		t.Errorf("%+v", got)
	}
	b.Reset()
	if err := doctorJSON(&b, 0, &diagnose.Report{Checks: examined.Checks[:1]}); err != nil ||
		!strings.Contains(b.String(), `"works": true`) || !strings.Contains(b.String(), `"exit_code": 0`) {
		t.Error(err, b.String())
	}
}

// TestDoctored: the doctor's remedies are about recording, whatever the doctor was asked.
func TestDoctored(t *testing.T) {
	args := []string{"/usr/bin/goprof", "doctor", "--json", "--pid", "7"}
	if got := doctored(args, 7); !slices.Equal(got, []string{"/usr/bin/goprof", "record", "--pid", "7"}) {
		t.Error(got)
	}
	if got := doctored(args, 0); !slices.Equal(got, []string{"/usr/bin/goprof", "record", "--pid", "PID"}) {
		t.Error(got)
	}
	if args[1] != "doctor" {
		t.Error("the arguments were changed")
	}
}

func TestCommandLine(t *testing.T) {
	if got := exit.CommandLine([]string{"goprof", "record", "-o", "my file", "it's", "",
		"--pid=7"}); got != `goprof record -o 'my file' 'it'\''s' '' --pid=7` {
		t.Error(got)
	}
}
