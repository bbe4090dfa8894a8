//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"

	"goprof/agent"
	"goprof/agent/config"
	"goprof/output"
	"goprof/session"
)

// The messages of an agent at its start and at its end: what it records, and what it has done.

func plan(c *config.Config) string {
	what := []string{modeWords[c.Mode]}
	for _, e := range c.Events {
		what = append(what, e.Name)
	}
	whose := "the JVMs of this host"
	if len(c.Choice.Match)+len(c.Choice.Deny) > 0 {
		whose += " that match and deny choose"
	}
	if c.WholeHost {
		whose += " and of its other processes"
	}
	to := append(urls(c.To.OTLP), append(urls(c.To.Pyroscope), urls(c.To.Parca)...)...)
	if c.Files.Dir != "" {
		to = append(to, c.Files.Dir)
	}
	if to == nil {
		to = []string{"nowhere"}
	}
	return fmt.Sprintf("recording %s of %s at %v Hz; a batch of each goes to %s every %v", strings.Join(what, ", "), whose,
		c.Rate, strings.Join(to, ", "), c.Every)
}

var modeWords = map[session.Mode]string{session.CPUMode: "CPU time", session.WallMode: "wall-clock time",
	session.WaitingMode: "waits"}

func agentEnded(m *agent.Counts, took time.Duration) string {
	text := fmt.Sprintf("ended after %v: %d JVMs were found, %s samples of them are in %s batches, %s were lost",
		output.Round(took), m.Found, output.Grouped(m.Samples), output.Grouped(m.Batches), output.Grouped(m.Lost))
	if m.LeftOut > m.Samples {
		text += fmt.Sprintf("; %s looks were put off or left out, as a thread might have been held for too long",
			output.Grouped(m.LeftOut))
		if why, _ := session.NoPriority(); why != "" {
			text += ": " + why
		}
	}
	return text
}

func (o *outlets) lines() (all []string) {
	if o.files != nil {
		st := o.files.Stats()
		all = append(all, fmt.Sprintf("files: %s written, %s not, %s old ones removed; %s are there",
			output.Grouped(st.Written), output.Grouped(st.Dropped), output.Grouped(st.Removed), output.Size(uint64(st.Bytes))))
	}
	if o.to != nil {
		stats := o.to.shipper.Stats()
		for i := range stats {
			st := &stats[i]
			all = append(all, fmt.Sprintf("%s: %s of %s batches sent, %s refused, %s dropped, %s wait", st.Name,
				output.Grouped(st.Sent.Batches), output.Grouped(st.Offered.Batches+st.Recovered.Batches),
				output.Grouped(st.Refused.Batches), output.Grouped(st.Dropped.Batches), output.Grouped(st.Queued.Batches)))
		}
	}
	return all
}
