//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"goprof/agent"
	"goprof/agent/identity"
	"goprof/output"
	"goprof/profile/resource"
)

// dryRun shows what an agent with these settings would do with each running JVM. It attaches to none.
func dryRun(w io.Writer, h *agent.ThisHost, s *agent.Settings) error {
	jvms := h.JVMs()
	if len(jvms) == 0 {
		_, err := fmt.Fprintln(w, "goprof sees no JVM on this host.")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PID\tUSER\tCPU\tSERVICE\tPOD\tWHAT")
	for i := range jvms {
		j := agent.Candidate{JVM: jvms[i]}
		h.Place(&j)
		of := s.Attributes
		identity.Enrich(j.PID, &of)
		row := []string{strconv.Itoa(j.PID), j.User, fmt.Sprintf("%.0f %%", 100*j.Share),
			cmp.Or(of.Get(resource.ServiceName), j.Name()), cmp.Or(of.Get(resource.PodName), "-"), planFor(s, &j)}
		for at, text := range row {
			row[at] = output.Printable(text)
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

func planFor(s *agent.Settings, j *agent.Candidate) string {
	switch {
	case s.Choice.Judge(j, true) != agent.Wanted:
		return "left alone, by match and deny"
	case j.Problem != nil:
		return "cannot be recorded: " + j.Problem.Why
	case len(s.EventsOf(j)) > 0:
		return "recorded, with events"
	}
	return "recorded"
}
