//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/agent"
	"goprof/agent/config"
	"goprof/agent/identity"
	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/outlets"
	"goprof/cmd/goprof/internal/snapper"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/process"
	"goprof/sampler/guard"
	"goprof/session"
)

const agentName = "agent"

const agentHelp = `agent runs until SIGTERM. It finds the JVMs of this host as they start, those in
containers too. It records all of them at a low rate, and hands over a batch of each JVM every 15
seconds. It loads nothing into a JVM and changes nothing there.

A JVM that does nothing is not touched: only its CPU clock is read, each second. goprof attaches to
a JVM when it has used as much CPU time as one sample stands for. It lets go of the JVM after a
minute without that.

goprof and the pauses of all JVMs together take at most --max-cpu of the host. If they would take
more, JVMs with many samples lose some first.

--event alloc,exceptions,lock records these beside CPU time, each as a profile of its own. If one is
not available in a JVM, the JVM is recorded without it, and the log says why. Probes cost each call: use
--event-match for some JVMs only. docs/agent.md says what is needed.

--whole-host samples all other processes and the kernel's threads, too, by frame pointers: what eats the
machine beside the JVMs. docs/whole-host.md says how far that reaches.

--match and --deny choose JVMs by name (main class or jar), main, user, cgroup, container,
namespace (of the pod), version and vendor: --match petclinic, --match user=^app$,
--deny version=^1.8. Without --match all JVMs are recorded.

Each flag may also be a variable of the environment or a key of one YAML file: --rate is
GOPROF_AGENT_RATE, and rate. A flag wins over a variable, and a variable over the file.
SIGHUP reads the file again; a changed file is read within 10 seconds.

--snap-on takes a snap (goprof snap) of a JVM by itself, into --snap-dir: when a safepoint lasts for 10 seconds or
threads are deadlocked (stuck), at an OutOfMemoryError (oom), when it uses its CPUs (cpu>90% for 30s), and
of all JVMs when the agent gets SIGUSR2. A JVM has at most one in 10 minutes; 20 snaps and 1 GB are kept.

docs/agent.md has the file's schema, docs/deploy.md a unit for systemd and a DaemonSet, and docs/engines.md
what servers get and what is promised of delivery.

Nothing listens unless --listen says where. Messages go to standard error.`

const agentExample = `  goprof agent --files /var/lib/goprof
  goprof agent --otlp http://collector:4318 --spool /var/lib/goprof/spool
  goprof agent --files /var/lib/goprof --files-format jfr --every 1m --files-max-bytes 5GB
  goprof agent --otlp http://collector:4318 --event alloc=1m,lock
  goprof agent --otlp http://collector:4318 --whole-host    other processes, too
  goprof agent --files /var/lib/goprof --snap-on "stuck, oom, cpu>90% for 30s" --snap-dir /var/lib/goprof/snaps
  goprof agent --config /etc/goprof/agent.yaml --listen 127.0.0.1:9464
  goprof agent --config /etc/goprof/agent.yaml --take-over    a new goprof in place of the old one, without a gap
  goprof agent --config /etc/goprof/agent.yaml --check        only say whether the file is right
  goprof agent --config /etc/goprof/agent.yaml --dry-run      only say what it would do with which JVM`

// agentFlags are the flags as given. Package config interprets them.
type agentFlags struct {
	file     string
	check    bool
	dryRun   bool
	takeOver bool
	said     config.Said
}

func newAgent() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:     agentName + " {--files DIR | --otlp URL | --config FILE}",
		Short:   "Record all JVMs of this host, all the time",
		Long:    agentHelp,
		Example: agentExample,
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.file, "config", "c", "", "`file` (YAML) that says what flags and variables do not")
	fs.BoolVar(&f.check, "check", false, "only say whether the configuration is right")
	fs.BoolVar(&f.dryRun, "dry-run", false, "only say what would be done with each JVM that runs now")
	fs.BoolVar(&f.takeOver, "take-over", false, "take over from the agent that uses the same folder, without a gap")
	for i := range config.Options {
		o := &config.Options[i]
		flag := fs.VarPF(&agentFlag{&f.said, o}, o.Name, "", o.Usage)
		if o.Arg == "" {
			flag.NoOptDefVal = "true"
		}
	}
	return cmd
}

// agentFlag is a flag that stores its text unchanged.
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

// load makes the configuration from file, variables and flags.
func (f *agentFlags) load() (config.Config, error) {
	return config.Load(f.file, config.Environment(os.LookupEnv), f.said)
}

// run checks the configuration, opens the port and the destinations, and serves until the agent ends. With --check or
// --dry-run it only reports. With --take-over it replaces an agent that uses the same folder.
func (f *agentFlags) run(cmd *cobra.Command) error {
	c, err := f.load()
	if err != nil {
		return f.wrong(cmd, err)
	}
	names := redactFlags{policy: c.Redact, key: c.RedactKey, prefix: "redact-"}
	if err := names.prepare(cmd); err != nil {
		return err
	}
	talk := cmd.ErrOrStderr()
	if f.check {
		if err := outlets.Check(&c.To); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), "the configuration is right")
		return nil
	}
	if f.dryRun {
		if err := checkProc(); err != nil {
			return err
		}
		guard.Enter(guard.ToWatch)
		return writeResult(cmd, outfile.Stdout, func(w io.Writer) error {
			return dryRun(w, agent.NewHost(exit.Host(), version(), nil), &c.Settings)
		})
	}
	say := func(text string) { fmt.Fprintf(talk, "goprof: %s\n", output.Printable(text)) }
	out := outlets.New(version(), names.by, say)
	takesOver := f.takeOver && len(handoverFolders(&c)) > 0
	if f.takeOver && !takesOver {
		return errNoFolder()
	}
	var at net.Listener
	if c.Listen != "" {
		if at, err = listen(c.Listen, takesOver); err != nil {
			return err
		}
	}
	defer out.Close()
	if err := out.Connect(&c); err == nil {
		takesOver = false // there is no other agent
	} else if !takesOver || !outlets.InUse(err) {
		return err
	}
	return f.serve(cmd, &c, at, out, say, takesOver)
}

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

// boundMemory sets Go's memory limit, so that garbage stays within max-memory.
func boundMemory(s *agent.Settings) {
	if s.MaxMemory == 0 {
		debug.SetMemoryLimit(math.MaxInt64)
		return
	}
	debug.SetMemoryLimit(s.MaxMemory - programSize)
}

// programSize is the memory of the program's own code and data, with the kernel's memory for them. The Go runtime does
// not count it.
const programSize = 20 << 20

// keptLibraries limits the data about libraries that are kept for the next JVM with the same libraries. The data of
// libjvm take some MB.
func keptLibraries(maxMemory int64) int {
	const most = 24 << 20
	if maxMemory == 0 {
		return most
	}
	return int(min(most, maxMemory/10))
}

// serve runs the agent until a signal ends it.
func (f *agentFlags) serve(cmd *cobra.Command, c *config.Config, at net.Listener, out *outlets.Outlets,
	say func(string), takesOver bool) error {
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	defer watchOver()()
	host := agent.NewHost(exit.Host(), version(), identity.Enrich)
	a := agent.New(host, c.Settings, out.Offer, say)
	endSnapper, err := snapper.Keep(c, a, cmd.ErrOrStderr(), say)
	if err != nil {
		return err
	}
	defer endSnapper()
	others, err := openOthers(c, a, host, out)
	if err != nil {
		return err
	}
	goFirst()
	session.LetSysmonRest()
	guardAgent(c, say)
	session.StayAhead()
	process.KeepLibraries(keptLibraries(c.MaxMemory))
	boundMemory(&c.Settings)

	a.Hide(out.Text)
	if at != nil {
		end := serveMetrics(at, func(w io.Writer) { writeMetrics(w, a, host, others, out) }, a.Metrics().Healthy)
		defer end()
	}
	ctx, cancel := context.WithCancel(ctx)
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		host.Run(ctx, c.Engine, say)
	}()
	go f.reload(ctx, again, a, c, say)
	var failed error
	taking := make(chan struct{})
	if takesOver {
		a.Rehearse()
	}
	var rest sync.WaitGroup
	if others != nil { // from now on a tells others which samples count
		rest.Go(func() { others.Run(ctx) })
	}
	go func() {
		defer close(taking)
		if takesOver {
			if failed = takeOver(ctx, a, c, out, say); failed != nil {
				cancel()
				return
			}
		}
		go awaitSuccessor(ctx, a, c, say, cancel)
	}()
	say(plan(c))
	if c.Snaps.On.Any() {
		say(fmt.Sprintf("snaps go to %s, at: %s", c.Snaps.Dir, c.Snaps.On.String()))
	}
	began := time.Now()
	a.Run(ctx)
	did := a.Metrics().Counts()
	say(agentEnded(&did, time.Since(began)))
	cancel()
	if rest.Wait(); others != nil {
		say(othersDeeds(others))
	}
	<-sampled
	<-taking
	return failed
}

// lookAtFile is how often the agent checks whether its configuration file has changed, as that of a ConfigMap does.
const lookAtFile = 10 * time.Second

// reload reads the configuration at each signal, and when its file has changed. If the new one is wrong, reload logs
// why, and the agent keeps the old one.
func (f *agentFlags) reload(ctx context.Context, again <-chan os.Signal, a *agent.Agent, old *config.Config,
	say func(string)) {
	look := time.NewTicker(lookAtFile)
	defer look.Stop()
	read := changeOf(f.file)
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-look.C:
			if changeOf(f.file) == read {
				continue
			}
		}
		read = changeOf(f.file)
		c, err := f.load()
		if err != nil {
			say("the new configuration is refused: " + err.Error())
			continue
		}
		if text := staysAsItWas(&c, old); text != "" {
			say(text)
		}
		c.Engine, c.Events = old.Engine, old.Events
		boundMemory(&c.Settings)
		a.Reload(c.Settings)
	}
}

// changeOf returns the time of a file's last change, or the zero time if there is no file.
func changeOf(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// staysAsItWas names the part of a new configuration that takes effect only after a restart. It returns "" if there is
// none.
func staysAsItWas(c, old *config.Config) string {
	var what []string
	for _, one := range []struct {
		name    string
		differs bool
	}{
		{"listen", c.Listen != old.Listen},
		{"engine", c.Engine != old.Engine}, // goprof has given up the rights that perf needs
		{"event", !slices.Equal(c.Events, old.Events)},
		{"whole-host", c.WholeHost != old.WholeHost},
		{"files", c.Files != old.Files},
		{"snap-on", c.Snaps != old.Snaps},
		{"redact", c.Redact != old.Redact || c.RedactKey != old.RedactKey},
		{"destinations", c.To != old.To},
	} {
		if one.differs {
			what = append(what, one.name)
		}
	}
	if what == nil {
		return ""
	}
	text := "the new configuration has other " + strings.Join(what, ", other ") +
		": the old ones hold until the agent is started again"
	if err := outlets.Check(&c.To); err != nil {
		text += ", and the agent would not start: " + err.Error()
	}
	return text
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

// isOwn reports whether goprof can write to a folder without CAP_DAC_OVERRIDE. A spool is always writable (ship,
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
