//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"

	"goprof/agent"
	"goprof/agent/config"
	"goprof/cmd/goprof/internal/outlets"
	"goprof/output"
	"goprof/session"
)

// An agent's messages at its start and its end: what it records, and what it has done.

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
	to := append(outlets.URLs(c.To.OTLP), append(outlets.URLs(c.To.Pyroscope), outlets.URLs(c.To.Parca)...)...)
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
