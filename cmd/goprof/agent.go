//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/shelf"
	"goprof/output/ship"
	"goprof/profile/resource"
	"goprof/sampler"
	"goprof/sampler/agent"
	"goprof/sampler/agent/config"
	"goprof/sampler/guard"
	"goprof/sampler/session"
	"goprof/sampler/whose"
)

const agentName = "agent"

const agentHelp = `agent runs until it is told to end (SIGTERM). It finds the JVMs of this host as they start,
containers included, records all of them at a low rate, and hands over a batch of each JVM every 15 seconds.
Nothing is loaded into a JVM and nothing of it is changed.

A JVM that does nothing is not touched: only its CPU clock is read, each second. It is attached to
when it has used as much CPU time as one sample stands for, and let go after a minute without that.
goprof and the pauses of all JVMs together take at most --max-cpu of the host; where they would take
more, JVMs with many samples lose some first.

--match and --deny choose by name (main class or jar), main, user, cgroup, container, namespace (of
the pod), version and vendor: --match petclinic, --match user=^app$, --deny version=^1.8. Without
--match all are recorded.

All of this may also stand in the environment (GOPROF_AGENT_ and the name of the flag: _RATE) and in
one YAML file, whose keys are the names of the flags. Flags go first, then variables, then the file.
SIGHUP reads the file anew. docs/agent.md has the schema, a unit for systemd and a DaemonSet.

` + destinationsHelp + `
docs/engines.md has what each server gets and what is promised of delivery.

Nothing listens unless --listen says where. Messages go to standard error.`

const agentExample = `  goprof agent --files /var/lib/goprof
  goprof agent --files /var/lib/goprof --files-format jfr --every 1m --files-max-bytes 5GB
  goprof agent --otlp http://localhost:4318 --spool /var/spool/goprof
  goprof agent --config /etc/goprof/agent.yaml --listen 127.0.0.1:9464
  goprof agent --config /etc/goprof/agent.yaml --check     only say whether the file is right`

// agentFlags are the flags as they were given: config knows what they mean.
type agentFlags struct {
	file  string
	check bool
	said  config.Said
	to    destinationFlags
	flags *pflag.FlagSet // of to alone, for the file
}

func newAgent() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:     agentName + " {--files DIR | --otlp URL | --config FILE ...}",
		Short:   "Record all JVMs of this host, all the time",
		Long:    agentHelp,
		Example: agentExample,
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.file, "config", "c", "", "`file` that holds what the flags below do not say")
	fs.BoolVar(&f.check, "check", false, "only say whether the configuration is right")
	for i := range config.Options {
		o := &config.Options[i]
		flag := fs.VarPF(&agentFlag{&f.said, o}, o.Name, "", o.Usage)
		if o.Arg == "" {
			flag.NoOptDefVal = "true"
		}
	}
	f.flags = pflag.NewFlagSet(agentName, pflag.ContinueOnError)
	f.to.add(f.flags)
	fs.AddFlagSet(f.flags)
	return cmd
}

// sentTo are the destinations' flags, as the file and the environment set them: those that the command line has not.
type sentTo struct {
	flags *pflag.FlagSet
	given map[string]bool // on the command line
	fixed bool            // the agent runs already: they are what they are
}

func (s sentTo) Has(name string) bool { return s.flags.Lookup(name) != nil }

func (s sentTo) Set(name, text string) error {
	if s.fixed || s.given[name] {
		return nil
	}
	return s.flags.Set(name, text)
}

// destinations has the file and the environment set what the command line has not.
func (f *agentFlags) destinations() sentTo {
	s := sentTo{flags: f.flags, given: map[string]bool{}}
	f.flags.VisitAll(func(flag *pflag.Flag) { s.given[flag.Name] = flag.Changed }) // the command's own set has parsed them
	return s
}

// fromEnvironment sets destinations' flags by variables.
func (s sentTo) fromEnvironment() (err error) {
	s.flags.VisitAll(func(flag *pflag.Flag) {
		o := config.Option{Name: flag.Name}
		text, ok := os.LookupEnv(o.Variable())
		if !ok || s.given[flag.Name] || err != nil {
			return
		}
		s.given[flag.Name] = true // the file does not add to it
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && err == nil {
				err = s.flags.Set(flag.Name, line)
			}
		}
	})
	return err
}

// agentFlag hands over what a flag says as it is.
type agentFlag struct {
	said   *config.Said
	option *config.Option
}

var _ pflag.Value = (*agentFlag)(nil)

func (f *agentFlag) String() string { return "" }
func (f *agentFlag) Type() string {
	if f.option.Arg == "" {
		return "bool"
	}
	return "string"
}
func (f *agentFlag) Set(text string) error {
	f.said.Add(f.option.Name, text)
	return nil
}

// load makes the configuration of file, variables and flags.
func (f *agentFlags) load(to sentTo) (config.Config, error) {
	return config.Load(f.file, to, config.Environment(os.LookupEnv), f.said)
}

func (f *agentFlags) run(cmd *cobra.Command) error {
	to := f.destinations()
	if err := to.fromEnvironment(); err != nil {
		return f.wrong(cmd, err)
	}
	c, err := f.load(to)
	if err == nil && c.Files.Dir == "" && !f.to.any() {
		err = errors.New("there is nowhere to send batches to: give --files, --otlp, --pyroscope or --parca")
	}
	if err != nil {
		return f.wrong(cmd, err)
	}
	rules, err := f.to.rules()
	if err != nil {
		return err
	}
	talk := cmd.ErrOrStderr()
	if f.check {
		fmt.Fprintln(cmd.OutOrStdout(), "the configuration is right")
		return nil
	}
	say := func(text string) { fmt.Fprintf(talk, "goprof: %s\n", output.Printable(text)) }
	var at net.Listener
	if c.Listen != "" {
		if at, err = net.Listen("tcp", c.Listen); err != nil {
			return &exit.Error{Code: exit.General, What: "cannot listen at " + c.Listen, Why: err.Error(),
				Remedy: "another port, or no --listen"}
		}
	}
	out := &takers{rules: rules}
	if c.Files.Dir != "" {
		if out.files, err = shelf.New(shelf.Options{Dir: c.Files.Dir, JFR: c.Files.JFR, MaxBytes: c.Files.MaxBytes,
			MaxFiles: c.Files.MaxCount, Tell: say}); err != nil {
			return outputFailed(err)
		}
	}
	if f.to.any() {
		if out.servers, err = f.to.open(say); err != nil {
			return err
		}
	}
	defer out.close(say)
	return f.serve(cmd, &c, at, out, say)
}

// takers are those that take batches.
type takers struct {
	rules   resource.Rules
	files   *shelf.Shelf  // nil: none
	servers *ship.Shipper // nil: none
}

// offer gives a batch to all. It does not wait.
func (t *takers) offer(b *ship.Batch) {
	whose, keep := t.rules.Apply(b.Resource)
	if !keep {
		return
	}
	b.Resource = whose
	if t.files != nil {
		t.files.Offer(b)
	}
	if t.servers != nil {
		t.servers.Offer(b)
	}
}

// lastWords is how long servers have to take the last batches. systemd waits for 90 s.
const lastWords = 5 * time.Second

func (t *takers) close(say func(string)) {
	if t.files != nil {
		t.files.Close()
	}
	if t.servers != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
		defer cancel()
		if err := undelivered(t.servers, t.servers.Close(ctx)); err != nil {
			say(err.Error())
		}
	}
}

// wrong tells an error of the configuration.
func (f *agentFlags) wrong(cmd *cobra.Command, err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return &exit.Error{Code: exit.BadInput, What: "cannot read the configuration", Why: err.Error()}
	}
	e := usageError(cmd, err.Error())
	if f.file != "" {
		e.Remedy = "goprof agent --check --config " + f.file
	}
	return e
}

// agentGarbage is how much the heap may grow until garbage is collected, in percent: less than usual, for most of it is
// caches that live for long.
const agentGarbage = 50

// serve watches until a signal ends it.
func (f *agentFlags) serve(cmd *cobra.Command, c *config.Config, at net.Listener, out *takers,
	say func(string)) error {
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	defer session.StopAfterSuspend()()
	defer session.StartWatchdog(watchdogName)()
	goFirst()
	if out.servers != nil {
		guard.EnterSending(guard.ToRecord)
	} else {
		guard.Enter(guard.ToRecord)
	}
	session.StayAhead()
	debug.SetGCPercent(agentGarbage)

	host := agent.NewHost(host(), version(), whose.Enrich)
	a := agent.New(host, c.Settings, out.offer, say)
	if at != nil {
		end := serveMetrics(at, func(w io.Writer) { writeMetrics(w, a, host, out) }, a.Metrics().Healthy)
		defer end()
	}
	ctx, cancel := context.WithCancel(ctx)
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		if err := host.Run(ctx); errors.Is(err, sampler.ErrNoVisits) {
			say("each JVM has a sampler of its own, which costs more: CPUs cannot be visited for all together " +
				"(that needs CAP_PERFMON, CAP_SYS_NICE and two CPUs)")
		}
	}()
	go f.reload(ctx, again, a, c, say)
	say(fmt.Sprintf("recording the JVMs of this host at %v Hz, a batch of each every %v", c.Rate, c.Every))
	a.Run(ctx)
	cancel()
	<-sampled
	return nil
}

// reload reads the configuration at each signal. What is wrong with it is told, and the old one holds.
func (f *agentFlags) reload(ctx context.Context, again <-chan os.Signal, a *agent.Agent, old *config.Config,
	say func(string)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
		}
		c, err := f.load(sentTo{flags: f.flags, fixed: true})
		if err != nil {
			say("the configuration is not taken: " + err.Error())
			continue
		}
		if c.Listen != old.Listen || c.Files != old.Files {
			say("listen, files and servers are what they were: they change with a restart")
		}
		a.Reload(c.Settings)
	}
}
