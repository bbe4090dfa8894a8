package main

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/profile/redact"
)

// redactFlags say which names are removed from the output.
type redactFlags struct {
	policy, key, names string
	prefix             string           // of the flags, for errors
	by                 *redact.Redactor // nil: all names may be shown
	words              map[string]string
	file               *outfile.File
}

// defaultPolicy is the name of the built-in policy.
const defaultPolicy = "default"

// add adds the flags to a command whose main purpose is another one.
func (f *redactFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.prefix = "redact-"
	fs.StringVar(&f.policy, "redact", "", "pseudonyms for all names but those that `POLICY` allows: default, or a "+
		"file (docs/redaction.md)")
	fs.StringVar(&f.key, "redact-key", "", "`file` with the key of the pseudonyms (default: one for this run alone)")
	fs.StringVar(&f.names, "redact-map", "", "write to `file` what each pseudonym stands for. Keep it")
}

// checkMapFile makes sure that the map is in a file of its own. Otherwise it would be passed on together with the
// pseudonyms.
func (f *redactFlags) checkMapFile(cmd *cobra.Command, others []string) error {
	for _, other := range append([]string{f.key, f.policy}, others...) {
		if f.names != "" && other != "" && filepath.Clean(other) == filepath.Clean(f.names) {
			return usageError(cmd, "--"+f.prefix+"map needs a file of its own, and "+other+" is none",
				with(f.prefix+"map", "names.json"))
		}
	}
	return nil
}

// runs wraps a command: the Redactor is made before it, and the map is written after it. others are the files that the
// command reads and writes. The command may return a finding as an error, so an error of the map comes first.
func (f *redactFlags) runs(run func(*cobra.Command, []string) error,
	others ...*string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		var names []string
		for _, name := range others {
			names = append(names, *name)
		}
		if err := f.prepare(cmd, names...); err != nil {
			return err
		}
		err := run(cmd, args)
		if err != nil && len(f.words) == 0 {
			return err // no name was replaced, so an older map stays
		}
		return cmp.Or(f.writeMap(), err)
	}
}

// stdout is the argument of runs for a command that writes to standard output.
var stdout = outfile.Stdout

// prepare makes the Redactor that the flags ask for, or none.
func (f *redactFlags) prepare(cmd *cobra.Command, others ...string) error {
	if err := f.checkMapFile(cmd, others); err != nil {
		return err
	}
	if f.policy == "" {
		if f.key != "" || f.names != "" {
			return usageError(cmd, "--"+f.prefix+"key and --"+f.prefix+"map go with --redact POLICY",
				with("redact", "default"))
		}
		return nil
	}
	policy, err := f.read(cmd)
	if err != nil {
		return err
	}
	key, err := f.readKey(cmd, policy)
	if err != nil {
		return err
	}
	f.by = redact.New(policy, key)
	if f.names != "" {
		if f.file, err = outfile.Reserve(f.names); err != nil {
			return exit.CannotWrite(err)
		}
		f.words = make(map[string]string)
		f.by.Tell(func(pseudonym, word string) { f.words[pseudonym] = word })
	}
	return nil
}

func (f *redactFlags) read(cmd *cobra.Command) (*redact.Policy, error) {
	if f.policy == defaultPolicy {
		return redact.Default(), nil
	}
	file, err := os.Open(f.policy)
	if err != nil {
		e := exit.CannotRead(f.policy, err)
		e.Remedy = "goprof " + cmd.Name() + " --help, or the policy \"default\""
		return nil, e
	}
	defer file.Close()
	policy, err := redact.ParsePolicy(file)
	if err != nil {
		return nil, &exit.Error{Code: exit.BadInput, What: "cannot read the policy " + f.policy,
			Why: output.Printable(err.Error())}
	}
	return policy, nil
}

// maxKey limits how much of a key file is read.
const maxKey = 1 << 20

// readKey reads the key, or makes a random one that is not stored.
func (f *redactFlags) readKey(cmd *cobra.Command, policy *redact.Policy) ([]byte, error) {
	name := f.key
	if name == "" && policy.KeyFile != "" {
		if name = policy.KeyFile; !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(f.policy), name)
		}
	}
	if name == "" {
		key := make([]byte, 32)
		rand.Read(key)
		return key, nil
	}
	file, err := os.Open(name)
	if err != nil {
		e := exit.CannotRead(name, err)
		e.Remedy = "head -c 32 /dev/urandom > " + name
		return nil, e
	}
	defer file.Close()
	key, err := io.ReadAll(io.LimitReader(file, maxKey))
	if err != nil {
		return nil, exit.CannotRead(name, err)
	}
	if len(key) < redact.KeySize {
		return nil, &exit.Error{Code: exit.BadInput, What: "cannot use the key " + name,
			Why:    fmt.Sprintf("it has %d bytes, and a key needs %d", len(key), redact.KeySize),
			Remedy: "head -c 32 /dev/urandom > " + name}
	}
	return key, nil
}

// writeMap writes the map of pseudonyms, if --redact-map names a file.
func (f *redactFlags) writeMap() error {
	if f.file == nil {
		return nil
	}
	_, err := f.file.Write(func(w io.Writer) error {
		for _, p := range slices.Sorted(maps.Keys(f.words)) {
			if _, err := fmt.Fprintf(w, "%s\t%s\n", p, output.Printable(f.words[p])); err != nil {
				return err
			}
		}
		return nil
	})
	return exit.CannotWrite(err)
}
