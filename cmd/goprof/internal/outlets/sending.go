//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"goprof/agent"
	"goprof/agent/config"
	"goprof/cmd/goprof/exit"
	"goprof/output/ship"
	"goprof/profile/resource"
	"goprof/sampler/guard"
	"goprof/session"
)

// sending sends an agent's batches to servers. A nil sending sends nothing.
type sending struct {
	shipper *ship.Shipper
	rules   resource.Rules
}

// openSending opens what the configuration names, nil if it names nothing.
func openSending(to *config.To, say func(string)) (*sending, error) {
	if !to.Any() {
		return nil, nil
	}
	f := destinationsOf(to)
	rules, err := f.rules()
	if err != nil {
		return nil, err
	}
	shipper, err := f.open(say)
	if err != nil {
		return nil, err
	}
	return &sending{shipper, rules}, nil
}

// destinationsOf turns the configuration into flags of goprof ship.
func destinationsOf(to *config.To) destinationFlags {
	return destinationFlags{otlp: urls(to.OTLP), pyroscope: urls(to.Pyroscope), parca: urls(to.Parca),
		otlpHeaders: to.OTLPHeaders, pyroscopeHeaders: to.PyroscopeHeaders, parcaHeaders: to.ParcaHeaders,
		ca: to.CA, cert: to.Cert, key: to.Key, spool: to.Spool, spoolMax: to.SpoolMax, relabel: to.Relabel}
}

// checkSending says what is wrong with destinations. It makes no connection and no spool.
func checkSending(to *config.To) error {
	f := destinationsOf(to)
	if _, err := f.rules(); err != nil {
		return err
	}
	_, err := f.destinations()
	return err
}

func urls(text string) (all []string) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// guardAgent gives up the rights that an agent does not need.
func guardAgent(c *config.Config, say func(string)) {
	keep := guard.ToWatch
	switch {
	case slices.ContainsFunc(c.Events, func(e session.AskedEvent) bool {
		return !agent.IsWait(e.Name) && session.MayNeedProbes(e.Name)
	}):
		keep = slices.Concat(keep, guard.ForPerf, guard.ForProbes)
	case c.Engine != session.PtraceEngine || len(c.Events) > 0 || c.WholeHost:
		keep = slices.Concat(keep, guard.ForPerf)
	}
	if !isOwn(c.Files.Dir) {
		keep = slices.Concat(keep, guard.ForFolders)
	}
	enter := guard.Enter
	if c.To.Any() {
		enter = guard.EnterSending
	}
	if enter(keep).AdminForPerf {
		say(exit.Host().AdminNote().Text)
	}
}

// isOwn reports whether goprof can write a folder without CAP_DAC_OVERRIDE. It always can write a spool (ship,
// checkOwner).
func isOwn(dir string) bool {
	if dir == "" {
		return true
	}
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o300 == 0o300
}

// lastTry is how long an agent that ends goes on sending. The rest stays in the spool.
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

// labelText escapes what stands between the quotes of a label, as Prometheus' text format has it.
var labelText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// metrics writes what became of batches for servers.
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
