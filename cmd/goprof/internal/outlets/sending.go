//go:build linux

package outlets

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"goprof/agent/config"
	"goprof/cmd/goprof/internal/destinations"
	"goprof/output/ship"
	"goprof/profile/resource"
)

// sending sends an agent's batches to servers. A nil sending sends nothing.
type sending struct {
	shipper *ship.Shipper
	rules   resource.Rules
}

// openSending opens the configured servers. It returns nil if there are none.
func openSending(to *config.To, version string, say func(string)) (*sending, error) {
	if !to.Any() {
		return nil, nil
	}
	f := destinationsOf(to, version)
	rules, err := f.Rules()
	if err != nil {
		return nil, err
	}
	shipper, err := f.Open(say)
	if err != nil {
		return nil, err
	}
	return &sending{shipper, rules}, nil
}

func destinationsOf(to *config.To, version string) destinations.Options {
	return destinations.Options{OTLP: URLs(to.OTLP), Pyroscope: URLs(to.Pyroscope), Parca: URLs(to.Parca),
		OTLPHeaders: to.OTLPHeaders, PyroscopeHeaders: to.PyroscopeHeaders, ParcaHeaders: to.ParcaHeaders,
		CA: to.CA, Cert: to.Cert, Key: to.Key, Spool: to.Spool, SpoolMax: to.SpoolMax, Relabel: to.Relabel,
		Version: version}
}

// Check checks the destinations. It makes no connection and no spool.
func Check(to *config.To) error {
	f := destinationsOf(to, "")
	return f.Check()
}

// URLs splits the URLs of one kind in a configuration.
func URLs(text string) (all []string) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// lastTry is how long an ending agent continues to send. The rest stays in the spool.
const lastTry = 5 * time.Second

func (s *sending) close(say func(string)) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastTry)
	defer cancel()
	if err := s.shipper.Close(ctx); err != nil {
		say(err.Error())
	}
}

// labelText escapes a label's value in Prometheus' text format.
var labelText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// metrics writes counters of batches for servers.
func (s *sending) metrics(w io.Writer) {
	if s == nil {
		return
	}
	stats := s.shipper.Stats()
	for _, m := range []struct {
		name, kind, help string
		value            func(*ship.Stats) int64
	}{
		{"ship_offered_total", "counter", "Batches for servers.", func(st *ship.Stats) int64 { return st.Offered.Batches }},
		{"ship_sent_total", "counter", "Batches that a server has.", func(st *ship.Stats) int64 { return st.Sent.Batches }},
		{"ship_sent_bytes_total", "counter", "Bytes of these.", func(st *ship.Stats) int64 { return st.SentBytes }},
		{"ship_retries_total", "counter", "Attempts that failed.", func(st *ship.Stats) int64 { return st.Retries }},
		{"ship_refused_total", "counter", "Batches refused for good.",
			func(st *ship.Stats) int64 { return st.Refused.Batches }},
		{"ship_dropped_total", "counter", "Batches without room.", func(st *ship.Stats) int64 { return st.Dropped.Batches }},
		{"ship_damaged_total", "counter", "Damaged files of the spool.",
			func(st *ship.Stats) int64 { return st.Damaged.Batches }},
		{"ship_queued", "gauge", "Batches that wait.", func(st *ship.Stats) int64 { return st.Queued.Batches }},
		{"ship_queued_bytes", "gauge", "Bytes of these.", func(st *ship.Stats) int64 { return st.QueuedBytes }},
	} {
		fmt.Fprintf(w, "# HELP goprof_agent_%s %s\n# TYPE goprof_agent_%[1]s %[3]s\n", m.name, m.help, m.kind)
		for i := range stats {
			fmt.Fprintf(w, "goprof_agent_%s{destination=\"%s\"} %d\n", m.name, labelText.Replace(stats[i].Name),
				m.value(&stats[i]))
		}
	}
}
