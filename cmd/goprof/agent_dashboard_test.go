//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"goprof/agent"
	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/outlets"
)

// TestDashboardNamesMetrics: each metric that the dashboard and the alerts ask for is one that an agent serves.
func TestDashboardNamesMetrics(t *testing.T) {
	host := agent.NewHost(exit.Host(), "", nil)
	var served bytes.Buffer
	a := agent.New(host, agent.Default(), nil, nil)
	writeMetrics(&served, a, host, nil, outlets.New("", nil, nil))
	text := served.String() // and those with a destination
	for _, name := range []string{"sending.go", "outlets.go"} {
		text += readSource(t, "internal/outlets/"+name)
	}
	for _, file := range []string{"dashboard.json", "chart/alerts.yaml"} {
		b, err := os.ReadFile("../../scripts/kubernetes/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(b) {
			t.Errorf("%s is no JSON", file)
		}
		names := regexp.MustCompile(`goprof_agent_(\w+)`).FindAllStringSubmatch(string(b), -1)
		if len(names) < 5 {
			t.Errorf("%s names %d metrics", file, len(names))
		}
		for _, m := range names {
			if !strings.Contains(text, m[0]+"{") && !strings.Contains(text, m[0]+" ") && !strings.Contains(text, `"`+m[1]+`"`) {
				t.Errorf("%s: an agent serves no %s", file, m[0])
			}
		}
	}
}

func readSource(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
