package pprof

import (
	"fmt"
	"strconv"
	"strings"

	"goprof/profile"
)

// metaTexts returns the facts of a recording for the comments, by name.
func metaTexts(m *profile.Meta) []struct {
	name string
	text *string
} {
	return []struct {
		name string
		text *string
	}{
		{"goprof", &m.Version}, {"host", &m.Host}, {"main class", &m.MainClass}, {"JVM", &m.JVM}, {"mode", &m.Mode},
		{"engine", &m.Engine},
	}
}

func comments(m *profile.Meta) (lines []string) {
	for _, c := range metaTexts(m) {
		if *c.text != "" {
			lines = append(lines, c.name+": "+*c.text)
		}
	}
	if m.PID != 0 {
		lines = append(lines, fmt.Sprintf("pid: %d", m.PID))
	}
	return lines
}

func readComments(m *profile.Meta, lines []string) {
	for _, line := range lines {
		name, text, ok := strings.Cut(line, ": ")
		if !ok {
			continue
		}
		for _, c := range metaTexts(m) {
			if c.name == name {
				*c.text = text
			}
		}
		if pid, err := strconv.Atoi(text); err == nil && name == "pid" && pid > 0 {
			m.PID = pid
		}
	}
}
