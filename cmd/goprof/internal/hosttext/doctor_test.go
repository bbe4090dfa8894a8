//go:build linux

package hosttext

import (
	"encoding/json"
	"strings"
	"testing"

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
	if err := Doctor(&b, &examined); err != nil {
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
	if err := DoctorJSON(&b, 7, &examined); err != nil {
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
	if err := DoctorJSON(&b, 0, &diagnose.Report{Checks: examined.Checks[:1]}); err != nil ||
		!strings.Contains(b.String(), `"works": true`) || !strings.Contains(b.String(), `"exit_code": 0`) {
		t.Error(err, b.String())
	}
}
