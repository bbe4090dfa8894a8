package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/destinations"
	"goprof/output"
	"goprof/output/replay"
	"goprof/profile/batch"
	"goprof/profile/resource"
)

type shipFlags struct {
	to         destinations.Options
	in         inputFlags
	every      time.Duration
	wait       time.Duration
	service    string
	attributes []string
	pools      bool
}

func newShip() *cobra.Command {
	f := shipFlags{}
	cmd := &cobra.Command{
		Use:   "ship FILE --otlp URL",
		Short: "Send a recording to OpenTelemetry, Pyroscope or Parca",
		Long: `ship sends a recording, or a part of it, to servers that keep profiles: an OpenTelemetry
collector, Grafana Pyroscope, Parca, or any server that takes OTLP profiles (v1development).

` + destinationsHelp + `

` + inputsHelp + `
All parts of a recording are sent: CPU time, waits, allocations. A recording with times is
sent in pieces of --every. ship tries each server until it has all, or --wait is over. It
says what a server refused for good. With --spool the rest is kept, and the next goprof
with the same spool sends it.

The service's name is --service, or else the main class or jar. docs/engines.md has the
attributes, what each server gets, and what is promised of delivery.`,
		Example: `  goprof ship out.jfr --otlp http://localhost:4318
  goprof ship out.jfr --otlp grpcs://collector:4317 --tls-ca ca.pem --otlp-headers token.txt
  goprof ship out.jfr --pyroscope http://localhost:4040 --service shop
  goprof ship out.jfr --parca grpc://localhost:7070 --attribute team=checkout`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return runShip(cmd, args[0], &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addDestinations(flags, &f.to)
	flags.StringVar(&f.service, "service", "", "`name` of the service (service.name)")
	flags.StringArrayVar(&f.attributes, "attribute", nil, "add a resource attribute, `key=value`")
	flags.BoolVar(&f.pools, "pools", false, "count threads whose names differ by a number only as one")
	flags.Var(asTime(&f.every), "every", "one batch for each `time` of the recording (default: 10s)")
	flags.Var(asTime(&f.wait), "wait", "give up after this `time` (default: 1m)")
	f.in.add(cmd)
	return cmd
}

func runShip(cmd *cobra.Command, input string, f *shipFlags) error {
	rules, err := f.to.Rules()
	if err != nil {
		return err
	}
	f.in.all, f.to.Version = true, version()
	in, err := f.in.open(cmd, input)
	if err != nil {
		return err
	}
	defer in.Close()
	in.notes(cmd)
	whose, err := f.whose(cmd, in)
	if err != nil {
		return err
	}
	whose, keep := rules.Apply(whose)
	if !keep {
		return usageError(cmd, "--relabel drops this recording", without("relabel"))
	}
	shipper, err := f.to.Open(func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s\n", output.Printable(text)) })
	if err != nil {
		return err
	}
	wait := cmp.Or(f.wait, time.Minute)
	patience := wait // how long one batch may wait for room; after one failure no further batch waits
	o := replay.Options{Whose: whose, Pools: f.pools, Every: cmp.Or(f.every, 10*time.Second)}
	batches, readErr := replay.Each(in.src, o, func(b *batch.Batch) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if shipper.Give(ctx, b); ctx.Err() != nil {
			patience = 0
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	err = shipper.Close(ctx)
	if readErr != nil {
		return exit.CannotRead(in.name, readErr)
	}
	in.leftOut(cmd)
	for _, st := range shipper.Stats() {
		fmt.Fprintf(cmd.ErrOrStderr(), "sent       %s: %d of %d batches, %s, %d bytes\n", output.Printable(st.Name),
			st.Sent.Batches, batches, in.amount(st.Sent.Looks), st.SentBytes)
	}
	return destinations.Undelivered(shipper, err, f.to.Spool != "")
}

// whose returns the attributes of the recording's process.
func (f *shipFlags) whose(cmd *cobra.Command, in *openInput) (a resource.Attributes, err error) {
	info := in.src.Info()
	m := &info.Meta
	for _, pair := range f.attributes {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usageError(cmd, fmt.Sprintf("--attribute %q is no key=value", pair), without("attribute"))
		}
		a.Set(key, value)
	}
	a.Add(replay.Whose(m, f.service))
	return a, nil
}

// destinationsHelp is for the help of commands that send.
const destinationsHelp = `A URL begins with http://, https://, grpc:// (gRPC without TLS) or grpcs:// (with TLS),
and HOST:PORT follows. A flag may be given several times. Tokens belong in a file of
headers, never in a URL.`

func addDestinations(flags *pflag.FlagSet, to *destinations.Options) {
	flags.StringArrayVar(&to.OTLP, "otlp", nil, "send OpenTelemetry's profiles to `URL`")
	flags.StringArrayVar(&to.Pyroscope, "pyroscope", nil, "send to Grafana Pyroscope at `URL`")
	flags.StringArrayVar(&to.Parca, "parca", nil, "send to Parca at `URL`")
	flags.StringVar(&to.OTLPHeaders, "otlp-headers", "", "`file` of lines \"Name: value\" for --otlp")
	flags.StringVar(&to.PyroscopeHeaders, "pyroscope-headers", "", "`file` of headers for --pyroscope: X-Scope-OrgID")
	flags.StringVar(&to.ParcaHeaders, "parca-headers", "", "`file` of headers for --parca")
	flags.StringVar(&to.CA, "tls-ca", "", "`file` of certificates (PEM) to trust beside the system's")
	flags.StringVar(&to.Cert, "tls-cert", "", "`file` of goprof's own certificate (PEM)")
	flags.StringVar(&to.Key, "tls-key", "", "`file` of that certificate's key (PEM)")
	flags.StringVar(&to.Spool, "spool", "", "`folder` that keeps what is not delivered, over a restart too")
	flags.Int64Var(&to.SpoolMax, "spool-max", 0, "`MB` that wait for each server at most (default: 256; in memory 32)")
	flags.Var(asTime(&to.Timeout), "send-timeout", "how long one attempt to send may take (default: 30s)")
	flags.StringVar(&to.Relabel, "relabel", "",
		"`file` of rules for attributes, in the form of Prometheus (relabel_configs)")
}
