package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/replay"
	"goprof/profile/batch"
	"goprof/profile/resource"
)

type shipFlags struct {
	to         destinationFlags
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
	f.to.add(flags)
	flags.StringVar(&f.service, "service", "", "`name` of the service (service.name)")
	flags.StringArrayVar(&f.attributes, "attribute", nil, "add a resource attribute, `key=value`")
	flags.BoolVar(&f.pools, "pools", false, "count threads whose names differ by a number only as one")
	flags.Var(asTime(&f.every), "every", "one batch for each `time` of the recording (default: 10s)")
	flags.Var(asTime(&f.wait), "wait", "give up after this `time` (default: 1m)")
	f.in.add(cmd)
	return cmd
}

func runShip(cmd *cobra.Command, input string, f *shipFlags) error {
	rules, err := f.to.rules()
	if err != nil {
		return err
	}
	f.in.all = true
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
	shipper, err := f.to.open(func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s\n", output.Printable(text)) })
	if err != nil {
		return err
	}
	wait := cmp.Or(f.wait, time.Minute)
	patience := wait // how long one batch may wait for room; after a wait in vain no further batch waits
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
	return undelivered(shipper, err, f.to.spool != "")
}

// whose returns what is known of the recording's process.
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
