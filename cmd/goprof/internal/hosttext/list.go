//go:build linux

// Package hosttext writes goprof's knowledge of a host as text and as JSON: its JVMs, and doctor's checks. Names in
// JSON never change their meaning. Text of the target is made safe for a terminal, or escaped as JSON.
package hosttext

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"goprof/cmd/goprof/exit"
	"goprof/diagnose"
	"goprof/output"
	"goprof/output/top"
)

// cutTo writes lines of at most columns columns, and says so if it has cut any. 0 sets no limit.
func cutTo(to io.Writer, columns int, text string) error {
	var b strings.Builder
	short := false
	for line := range strings.Lines(text) {
		if columns > 0 {
			whole := strings.TrimSuffix(line, "\n")
			line = top.Cut(whole, columns) + "\n"
			short = short || strings.HasSuffix(line, "…\n") && !strings.HasSuffix(whole, "…")
		}
		b.WriteString(line)
	}
	if short {
		b.WriteString("(cut to the terminal: --wide shows all)\n")
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// List writes a table of at most columns columns. 0 sets no limit. Unknown facts are "-".
func List(w io.Writer, jvms []diagnose.JVM, withArgs bool, columns int) error {
	if len(jvms) == 0 {
		_, err := fmt.Fprintln(w, "goprof sees no JVM on this host.")
		return err
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	head := []string{"PID", "USER", "VERSION", "VENDOR", "GC", "UPTIME", "THREADS", "CPU", "MAIN CLASS"}
	shown := containerColumns(jvms)
	head = slices.Insert(head, 1, shown.heads()...)
	if withArgs {
		head[len(head)-1] = "COMMAND"
	}
	fmt.Fprintln(table, strings.Join(head, "\t"))
	for i := range jvms {
		fmt.Fprintln(table, strings.Join(listRow(&jvms[i], shown, withArgs), "\t"))
	}
	table.Flush()
	if err := cutTo(w, columns, text.String()); err != nil {
		return err
	}
	return listProblems(w, jvms)
}

// columns says which of the columns for containers are shown.
type columns struct{ inner, container bool }

func containerColumns(jvms []diagnose.JVM) (c columns) {
	for i := range jvms {
		c.inner = c.inner || jvms[i].InnerPID != 0
		c.container = c.container || jvms[i].Container != ""
	}
	return c
}

func (c columns) heads() (heads []string) {
	if c.inner {
		heads = append(heads, "IN CONTAINER")
	}
	if c.container {
		heads = append(heads, "CONTAINER")
	}
	return heads
}

func listRow(j *diagnose.JVM, shown columns, withArgs bool) []string {
	row := []string{strconv.Itoa(j.PID)}
	if shown.inner {
		inner := ""
		if j.InnerPID != 0 {
			inner = strconv.Itoa(j.InnerPID)
		}
		row = append(row, cell(inner))
	}
	if shown.container {
		row = append(row, cell(j.Container))
	}
	what := []string{j.Main}
	if withArgs {
		what = append(append(append([]string{}, j.Options...), j.Main), j.Args...)
	}
	return append(row,
		cell(j.User),
		cell(j.Version),
		cell(j.Vendor),
		cell(j.Collector),
		output.Uptime(j.Uptime),
		strconv.Itoa(j.Threads),
		fmt.Sprintf("%.0f%%", 100*j.Share),
		cell(strings.Join(what, " ")),
	)
}

// cell makes text of the target safe for a terminal and a table.
func cell(s string) string {
	if strings.TrimSpace(s) == "" {
		return "-"
	}
	return output.Printable(s)
}

// listProblems says why some JVMs cannot be recorded. Each cause is shown once.
func listProblems(w io.Writer, jvms []diagnose.JVM) error {
	type problem struct{ why, remedy string }
	var order []problem
	pids := map[problem][]string{}
	for i := range jvms {
		if c := jvms[i].Problem; c != nil {
			p := problem{c.Why, c.Remedy}
			if pids[p] == nil {
				order = append(order, p)
			}
			pids[p] = append(pids[p], strconv.Itoa(jvms[i].PID))
		}
	}
	var b strings.Builder
	for _, p := range order {
		because := ": "
		if len(pids[p]) > 1 {
			because = ", each because " // a cause is a sentence about one JVM
		}
		fmt.Fprintf(&b, "\n%s cannot be recorded%s%s\n", strings.Join(pids[p], ", "), because, output.Printable(p.why))
		if p.remedy != "" {
			fmt.Fprintf(&b, "try: %s\n", output.Printable(p.remedy))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// jvmJSON is a JVM in "goprof list --json". Names never change their meaning. Text of the target is unchanged, and
// escaped as JSON.
type jvmJSON struct {
	PID        int          `json:"pid"`
	InnerPID   int          `json:"inner_pid,omitempty"`
	Container  string       `json:"container,omitempty"`
	User       string       `json:"user"`
	UID        int          `json:"uid"`
	Version    string       `json:"version,omitempty"`
	Vendor     string       `json:"vendor,omitempty"`
	Collector  string       `json:"collector,omitempty"`
	Uptime     float64      `json:"uptime_seconds"`
	Threads    int          `json:"threads"`
	CPU        float64      `json:"cpu_seconds"`
	CPUPercent float64      `json:"cpu_percent"`
	Main       string       `json:"main"`
	Options    []string     `json:"options,omitempty"`
	Args       []string     `json:"args,omitempty"`
	Problem    *problemJSON `json:"problem,omitempty"`
}

// problemJSON is the reason why a JVM cannot be recorded.
type problemJSON struct {
	Name   string `json:"name"`
	Why    string `json:"why"`
	Remedy string `json:"remedy,omitempty"`
	Code   int    `json:"exit_code"`
}

func problemOf(c *diagnose.Cause) *problemJSON {
	if c == nil {
		return nil
	}
	return &problemJSON{Name: c.Name, Why: c.Why, Remedy: c.Remedy, Code: int(exit.CodeOf(c.Class))}
}

// ListJSON writes the same as JSON.
func ListJSON(w io.Writer, jvms []diagnose.JVM, withArgs bool) error {
	list := make([]jvmJSON, len(jvms))
	for i := range jvms {
		j := &jvms[i]
		list[i] = jvmJSON{
			PID: j.PID, InnerPID: j.InnerPID, Container: j.Container, User: j.User, UID: j.UID,
			Version: j.Version, Vendor: j.Vendor, Collector: j.Collector,
			Uptime: j.Uptime.Seconds(), Threads: j.Threads,
			CPU: j.CPU.Seconds(), CPUPercent: 100 * j.Share,
			Main: j.Main, Problem: problemOf(j.Problem),
		}
		if withArgs {
			list[i].Options, list[i].Args = j.Options, j.Args
		}
	}
	return output.WriteJSON(w, map[string]any{"jvms": list})
}
