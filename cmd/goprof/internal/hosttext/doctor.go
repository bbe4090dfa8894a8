//go:build linux

package hosttext

import (
	"fmt"
	"io"
	"strings"

	"goprof/cmd/goprof/exit"
	"goprof/diagnose"
	"goprof/output"
)

// Doctor writes a line for each check, and a line for its remedy.
func Doctor(w io.Writer, r *diagnose.Report) error {
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Name))
	}
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", c.Verdict, width, c.Name, output.Printable(c.Text))
		if c.Remedy != "" {
			fmt.Fprintf(&b, "      %-*s  try: %s\n", width, "", output.Printable(c.Remedy))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

type checkJSON struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Text    string `json:"text"`
	Remedy  string `json:"remedy,omitempty"`
}

type doctorReport struct {
	PID     int          `json:"pid,omitempty"`
	Works   bool         `json:"works"`
	Code    int          `json:"exit_code"`
	Problem *problemJSON `json:"problem,omitempty"`
	Checks  []checkJSON  `json:"checks"`
}

// DoctorJSON writes the same as JSON.
func DoctorJSON(w io.Writer, pid int, r *diagnose.Report) error {
	out := doctorReport{PID: pid, Works: r.Cause == nil, Code: int(exit.OK), Problem: problemOf(r.Cause)}
	if out.Problem != nil {
		out.Code = out.Problem.Code
	}
	for _, c := range r.Checks {
		out.Checks = append(out.Checks, checkJSON{c.Name, c.Verdict.String(), c.Text, c.Remedy})
	}
	return output.WriteJSON(w, out)
}
