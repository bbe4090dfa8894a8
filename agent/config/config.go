//go:build linux

// Package config reads the configuration of an agent: flags, environment variables and one YAML file. All three use the
// same names and the same values.
//
// An error names the key or flag, its place, and the possible values. An unknown key is an error.
package config

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"goprof/agent"
	"goprof/agent/alarm"
	"goprof/profile"
	"goprof/session"
)

// Config is the whole configuration of an agent.
type Config struct {
	agent.Settings
	Listen string // "": no server of metrics
	Files  Files
	To     To
	Snaps  Snaps
	// Redact is the policy that removes names from all batches, or "" for none. RedactKey is the file with the policy's
	// key.
	Redact, RedactKey string
	// WholeHost says that processes other than JVMs are sampled, too.
	WholeHost bool

	needsCPU bool // the option event contains cpu
}

// Files says where batches are kept as files.
type Files struct {
	Dir      string // "": no files
	JFR      bool
	MaxBytes int64
	MaxCount int
}

// Snaps says when the agent takes snaps by itself, and where it keeps them.
type Snaps struct {
	On  alarm.Rules
	Dir string
}

// Default returns the configuration of an agent without options.
func Default() Config {
	return Config{Settings: agent.Default(), Files: Files{MaxBytes: 1 << 30, MaxCount: 10_000}}
}

// Option is a setting. Flags, variables and the file use the same name for it.
type Option struct {
	Name  string
	Many  bool   // may be given several times
	Arg   string // the form of its value, for help
	Usage string
	set   func(c *Config, text string) error
}

const ruleArg = "RULE"

// Options are all options, in the order of the help.
var Options = []Option{
	{"files", false, "DIR", "keep batches as files in `folder`; the oldest are removed first",
		into(func(c *Config) *string { return &c.Files.Dir }, readFolder)},
	{"files-format", false, "FORMAT", "`format` of these files: pprof, or jfr",
		into(func(c *Config) *bool { return &c.Files.JFR }, readFormat)},
	{"files-max-bytes", false, "SIZE", "`bytes` that these files may take together: 500MB, 2GB",
		into(func(c *Config) *int64 { return &c.Files.MaxBytes }, readBytes)},
	{"files-max-count", false, "N", "`number` of these files",
		into(func(c *Config) *int { return &c.Files.MaxCount }, readCount)},
	{"every", false, "TIME", "`time` from one batch to the next: 10s",
		into(func(c *Config) *time.Duration { return &c.Every }, readTime)},
	{"rate", false, "HZ",
		"samples for each second of CPU time, in `Hz`; in modes wall and off-cpu, looks at each thread a second",
		into(func(c *Config) *float64 { return &c.Rate }, readRate)},
	{"mode", false, "MODE",
		"`which` threads: cpu (those that use CPU time), wall (all) or off-cpu (those that wait)", setMode},
	{"engine", false, "ENGINE", "`what` takes samples in mode cpu: ptrace, perf or auto", setEngine},
	{"event", false, "EVENTS",
		"`what` is recorded beside that: alloc, exceptions, libc:write ... as record --event has it, lock, off-cpu; " +
			"several with commas", setEvent},
	{"event-match", true, ruleArg, "record events of JVMs only that fit `rule`, as match has it", setEventMatch},
	{"whole-host", false, "", "sample the processes that are no JVM, and the kernel's threads, too",
		into(func(c *Config) *bool { return &c.WholeHost }, readBool)},
	{"match", true, ruleArg,
		"record only JVMs that fit `rule`: a regular expression for the name, or FIELD=EXPRESSION", setMatch},
	{"deny", true, ruleArg, "never record JVMs that fit `rule`", setDeny},
	{"attribute", true, "KEY=VALUE", "add this resource attribute to all batches, `key=value`: k8s.node.name=node-7",
		setAttribute},
	{"group-threads", false, "", "count threads whose names differ by a number only as one: fewer series",
		into(func(c *Config) *bool { return &c.Pools }, readBool)},
	{"max-cpu", false, "SHARE",
		"`share` of the host's CPUs that goprof and its pauses may take together; 0 is any",
		into(func(c *Config) *float64 { return &c.MaxCPU }, readShare)},
	{"max-memory", false, "SIZE", "`bytes` that goprof may keep; JVMs with little to do are let go first; 0 is any",
		into(func(c *Config) *int64 { return &c.MaxMemory }, readMemory)},
	{"max-jvms", false, "N", "`number` of JVMs that are recorded at a time",
		into(func(c *Config) *int { return &c.MaxJVMs }, readCount)},
	{"snap-on", false, "ALARMS",
		"take a snap of a JVM at these `alarms`: \"stuck, oom, cpu>90% for 30s, SIGUSR2\"", setSnapOn},
	{"snap-dir", false, "DIR", "keep these snaps in `folder`; the oldest are removed first",
		into(func(c *Config) *string { return &c.Snaps.Dir }, readFolder)},
	{"redact", false, "POLICY", "pseudonyms for all names but those that `policy` allows: default, or a file",
		into(func(c *Config) *string { return &c.Redact }, readText)},
	{"redact-key", false, "FILE", "`file` with the key of the pseudonyms; without one they change with each start",
		into(func(c *Config) *string { return &c.RedactKey }, readText)},
	{"listen", false, "ADDRESS",
		"serve /metrics and /healthz at `address`: 127.0.0.1:9464; nothing listens without it",
		into(func(c *Config) *string { return &c.Listen }, readAddress)},
}

// Find returns the option with that name, or nil.
func Find(name string) *Option {
	for i := range Options {
		if Options[i].Name == name {
			return &Options[i]
		}
	}
	return nil
}

// Variable returns the environment variable of the option.
func (o *Option) Variable() string {
	return VariablePrefix + strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_"))
}

// VariablePrefix is the beginning of all variables' names.
const VariablePrefix = "GOPROF_" + "AGENT_"

// Said holds options and their values, in the order in which they were given.
type Said []struct{ Name, Text string }

func (s *Said) Add(name, text string) { *s = append(*s, struct{ Name, Text string }{name, text}) }

// Environment returns the options that are set as variables. A variable with several rules has one on each line.
func Environment(lookup func(string) (string, bool)) (said Said) {
	for i := range Options {
		o := &Options[i]
		text, ok := lookup(o.Variable())
		if !ok {
			continue
		}
		if !o.Many {
			said.Add(o.Name, text)
			continue
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				said.Add(o.Name, line)
			}
		}
	}
	return said
}

// Load makes a Config from the file, if there is one, and from sources: variables first, then flags. The last value of
// an option counts. Rules and attributes of a source replace those of earlier sources.
func Load(file string, sources ...Said) (Config, error) {
	c := Default()
	if file != "" {
		if err := readFile(&c, file); err != nil {
			return c, err
		}
	}
	for _, said := range sources {
		fresh := map[string]bool{}
		for _, s := range said {
			o := Find(s.Name)
			if o == nil {
				return c, fmt.Errorf("there is no option %q", s.Name)
			}
			text := s.Text
			if o.Many && !fresh[o.Name] {
				c.forget(o.Name)
			} else if servers := c.To.servers(o.Name); servers != nil && fresh[o.Name] {
				text = *servers + "," + text // the form that goprof ship takes
			}
			fresh[o.Name] = true
			if err := o.set(&c, text); err != nil {
				return c, fmt.Errorf("%s: %w", o.Name, err)
			}
		}
	}
	return c, c.Check()
}

// forget drops the earlier values of an option that may be given several times.
func (c *Config) forget(name string) {
	if name == "attribute" {
		c.Attributes = nil
		return
	}
	*c.rules(name) = nil
}

func (c *Config) rules(name string) *[]agent.Rule {
	switch name {
	case "match":
		return &c.Choice.Match
	case "deny":
		return &c.Choice.Deny
	}
	return &c.EventMatch
}

// ErrNowhere says that no destination is configured.
var ErrNowhere = errors.New("there is nowhere to send batches to: give files, otlp, pyroscope or parca")

// Check finds options that contradict each other.
func (c *Config) Check() error {
	if err := c.Settings.Check(); err != nil {
		return err
	}
	if c.Files.Dir == "" && !c.To.Any() {
		return ErrNowhere
	}
	if len(c.EventMatch) > 0 && len(c.Events) == 0 {
		return errors.New("event-match goes with event")
	}
	if c.needsCPU && c.Mode != session.CPUMode {
		return fmt.Errorf("event cpu goes with mode cpu, not with mode %s", c.Mode)
	}
	if c.WholeHost && c.Mode != session.CPUMode {
		return fmt.Errorf("whole-host goes with mode cpu, not with mode %s", c.Mode)
	}
	if c.Snaps.On.Any() != (c.Snaps.Dir != "") {
		return errors.New("snap-on and snap-dir go together")
	}
	if c.RedactKey != "" && c.Redact == "" {
		return errors.New("redact-key goes with redact")
	}
	if name := c.To.idle(); name != "" {
		return fmt.Errorf("%s is for servers, and none is named: give otlp, pyroscope or parca", name)
	}
	return nil
}

func setSnapOn(c *Config, text string) (err error) {
	if c.Snaps.On = (alarm.Rules{}); text != "" {
		c.Snaps.On, err = alarm.Parse(text)
	}
	return err
}

// into makes a setter from a pointer to an option's field and a function that reads its value.
func into[T any](place func(*Config) *T, read func(text string) (T, error)) func(*Config, string) error {
	return func(c *Config, text string) (err error) {
		*place(c), err = read(text)
		return err
	}
}

func readText(text string) (string, error) { return text, nil }

func readFolder(text string) (string, error) {
	if strings.ContainsRune(text, 0) {
		return "", errors.New("it is no name of a folder")
	}
	return text, nil
}

func readFormat(text string) (isJFR bool, err error) {
	if text != "pprof" && text != "jfr" {
		err = fmt.Errorf("it is pprof or jfr, not %q", text)
	}
	return text == "jfr", err
}

func readTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		err = fmt.Errorf("%q is no time: 10s, 1m", text)
	}
	return d, err
}

func readRate(text string) (float64, error) {
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil {
		err = fmt.Errorf("%q is no number", text)
	}
	return rate, err
}

func setMode(c *Config, text string) error {
	switch text {
	case profile.ModeCPU, profile.ModeWall, profile.ModeOffCPU:
		c.Mode = session.Mode(text)
		return nil
	}
	return fmt.Errorf("it is cpu, wall or off-cpu, not %q", text)
}

func setEngine(c *Config, text string) error {
	for _, e := range session.Engines {
		if string(e) == text {
			c.Engine = e
			return nil
		}
	}
	return fmt.Errorf("it is ptrace, perf or auto, not %q", text)
}

func setMatch(c *Config, text string) error      { return c.addRule("match", text) }
func setDeny(c *Config, text string) error       { return c.addRule("deny", text) }
func setEventMatch(c *Config, text string) error { return c.addRule("event-match", text) }

func setAttribute(c *Config, text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return fmt.Errorf("%q is no key=value", text)
	}
	c.Attributes.Set(key, value)
	return nil
}

func (c *Config) addRule(name, text string) error {
	rule, err := agent.ParseRule(text)
	if err == nil {
		rules := c.rules(name)
		*rules = append(*rules, rule)
	}
	return err
}

// notEvents are events that the agent does not take as --event, with the reason for the user.
var notEvents = map[string]string{
	"wall": "it is mode wall: another agent with --mode wall records that", "ttsp": "goprof record and triage have it",
	profile.EventIO:      "each JVM that is recorded makes all system calls of the host slower: goprof record --event io",
	profile.EventLeak:    "what is freed is known at the end of a recording: goprof record --event malloc --leak",
	profile.EventMapLeak: "what is unmapped is known at the end of a recording: goprof record --event mmap --leak",
}

// setEvent reads "alloc=512k,lock". The list may contain cpu, which stands for the mode.
func setEvent(c *Config, text string) error {
	c.Events = nil
	if text == "" {
		return nil
	}
	list, err := session.ParseEvents(text)
	if err != nil {
		return err
	}
	for _, e := range list {
		if why, is := notEvents[e.Name]; is {
			return fmt.Errorf("%s is not recorded beside others: %s", e.Name, why)
		}
		if e.Name != profile.ModeCPU {
			c.Events = append(c.Events, e)
		} else if c.needsCPU = true; e.Every != 0 {
			return errors.New("cpu has no amount behind it: rate says how often")
		}
	}
	return nil
}

func readBool(text string) (bool, error) {
	is, err := strconv.ParseBool(text)
	if err != nil {
		err = fmt.Errorf("it is true or false, not %q", text)
	}
	return is, err
}

// readShare reads "1%", "1 %" and "0".
func readShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no share: 1%%, 0.5%%", text)
	case !percent && share != 0:
		return 0, fmt.Errorf("%q needs a percent sign: %s%%", text, number)
	}
	return share / 100, nil
}

func readMemory(text string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	return readBytes(text)
}

func readAddress(text string) (string, error) {
	if _, _, err := net.SplitHostPort(text); err != nil && text != "" {
		return "", fmt.Errorf("%q is no address: 127.0.0.1:9464", text)
	}
	return text, nil
}

func readCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is no number above 0", text)
	}
	return n, nil
}

// readBytes reads "500MB", "2 GB", "1GiB" and plain bytes.
func readBytes(text string) (int64, error) {
	number := strings.TrimRight(text, "kKMGTiB ")
	unit := strings.TrimSpace(text[len(number):])
	factor, ok := map[string]float64{"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10,
		"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[unit]
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(n*factor >= 1 && n*factor <= 1<<50) {
		return 0, fmt.Errorf("%q is no size: 500MB, 2GB", text)
	}
	return int64(n * factor), nil
}

// maxFile limits the size of the configuration file.
const maxFile = 1 << 20

func readFile(c *Config, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return Read(c, name, f)
}
