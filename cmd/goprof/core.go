package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/process"
	"goprof/process/unpack"
	"goprof/profile"
	"goprof/profile/contention"
	"goprof/profile/naming"
	"goprof/profile/redact"
	"goprof/session/postmortem"
	"goprof/triage/hserr"
)

// coreFile is the core file that a command reads instead of a live JVM, as given by flags.
type coreFile struct {
	file, root string
	debugDirs  []string
	by         *redact.Redactor // nil: names are shown
}

func (c *coreFile) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.file, "core", "", "read this core `file` instead of a live JVM (gzip, zstd and lz4, too)")
	c.addFiles(cmd, "with --core: ")
}

// addFiles adds the flags for the folders of files that a core lacks. when is the part of their help that says when
// they apply.
func (c *coreFile) addFiles(cmd *cobra.Command, when string) {
	cmd.Flags().StringVar(&c.root, "root", "", when+"the `folder` that was the JVM's root: an unpacked container image")
	cmd.Flags().StringArrayVar(&c.debugDirs, "debug-dir", nil,
		when+"a `folder` with libjvm.so and other files, by build id, path or name; may be repeated")
}

// check returns an error for flags that do not go with a core file. live are flags that need a live JVM.
func (c *coreFile) check(cmd *cobra.Command, args []string, live ...string) error {
	if c.file == "" {
		for _, name := range []string{"core", "root", "debug-dir"} {
			if cmd.Flags().Changed(name) {
				return usageError(cmd, "--"+name+" needs a core file: --core FILE", without("core", "root", "debug-dir"))
			}
		}
		return nil
	}
	if len(args) > 0 {
		return usageError(cmd, fmt.Sprintf("--core %s and %s: one of them", c.file, args[0]), withoutWord(args[0]))
	}
	for _, name := range live {
		if cmd.Flags().Changed(name) {
			return usageError(cmd, "--"+name+" is for a live JVM, and --core for a dead one", without(name))
		}
	}
	return c.checkFolders(cmd)
}

func (c *coreFile) checkFolders(cmd *cobra.Command) error {
	for _, dir := range append([]string{c.root}, c.debugDirs...) {
		if st, err := os.Stat(dir); dir != "" && (err != nil || !st.IsDir()) {
			return usageError(cmd, fmt.Sprintf("%s is no folder", dir))
		}
	}
	return nil
}

// openedCore is a core file with the JVM in it.
type openedCore struct {
	*postmortem.JVM
	file *unpack.File
	from *coreFile
}

func (c *openedCore) Close() {
	c.JVM.Close()
	c.file.Close()
}

// open opens the core file, and warns of what is uncertain in it.
func (c *coreFile) open(cmd *cobra.Command) (*openedCore, error) {
	what := "cannot read " + c.file
	file, err := unpack.Open(c.file)
	if file == nil {
		return nil, &exit.Error{Code: codeOfOpen(err), What: what, Why: whyOf(err),
			Remedy: remedyOfUnpack(c.file, err), Err: err}
	}
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s is not whole: %s\n", output.Printable(c.file),
			output.Printable(err.Error()))
	}
	jvm, err := postmortem.Open(file, file.Size, process.CoreOptions{Root: c.root, DebugDirs: c.debugDirs})
	if err != nil {
		e := &exit.Error{Code: exit.BadCore, What: what, Why: whyOf(err), Err: err}
		if jvm != nil {
			if cut := jvm.Core.Cut(); cut > 0 {
				e.Why = fmt.Sprintf("it is cut off, %s of it are missing: %s", output.Size(cut), e.Why)
			}
			if missing := jvm.Core.Missing(); len(missing) > 0 {
				e.Why += "; " + c.missingText(missing)
				e.Remedy = cmp.Or(c.remedyOfRefused(missing),
					"--root DIR with the JVM's files, or --debug-dir DIR with its libjvm.so")
			}
			jvm.Close()
		}
		file.Close()
		return nil, e
	}
	o := &openedCore{jvm, file, c}
	o.warn(cmd)
	return o, nil
}

// warn reports what reduces the quality of the result.
func (o *openedCore) warn(cmd *cobra.Command) {
	to := cmd.ErrOrStderr()
	if cut := o.Core.Cut(); cut > 0 {
		fmt.Fprintf(to, "goprof: %s is cut off: %s of it are missing, and what lay there is not known\n",
			output.Printable(o.from.file), output.Size(cut))
	}
	if v := o.VM.Version(); !v.Tested() {
		fmt.Fprintf(to, "goprof: this is JDK %d (%s), on which goprof is not tested. "+
			"It goes by the fields that the JVM exports\n", v.Major, output.Printable(v.Release))
	}
	for _, m := range o.VM.Missing() {
		fmt.Fprintf(to, "goprof: this JVM does not export all that goprof uses: %s\n", output.Printable(m))
	}
	if log := o.hsErr(); log != "" {
		fmt.Fprintf(to, "goprof: the crash file that the JVM wrote lies beside the core: %s\n", output.Printable(log))
	}
}

// hsErr returns the path of the JVM's crash file, if it lies beside the core.
func (o *openedCore) hsErr() string {
	name := filepath.Join(filepath.Dir(o.from.file), fmt.Sprintf("hs_err_pid%d.log", o.Core.PID()))
	if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	return name
}

// crashFile reads the crash file beside the core. It returns nil if there is none. name is the file's name for
// messages.
func (o *openedCore) crashFile(cmd *cobra.Command) (report *hserr.Report, name string) {
	path := o.hsErr()
	if path == "" {
		return nil, ""
	}
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		report, err = hserr.Parse(file)
	}
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s: %s\n", output.Printable(path), output.Printable(err.Error()))
		return nil, ""
	}
	return report, filepath.Base(path)
}

// missing reports files that were not found, or may be wrong. Call it after all reads.
func (o *openedCore) missing(cmd *cobra.Command) {
	if list := o.Core.Missing(); len(list) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s\ntry: %s\n", o.from.missingText(list),
			output.Printable(cmp.Or(o.from.remedyOfRefused(list), "--root DIR, or --debug-dir DIR")))
	}
	for _, u := range o.Core.Unproven() {
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s was read in place of what the core lacks. It has no build id: only that "+
			"%d %% of %d words agree says that it is the file that was mapped\n", o.from.path(u.Path), u.Percent, u.Words)
	}
}

const mostNamed = 8

func (c *coreFile) missingText(list []process.MissingFile) string {
	var text []string
	for _, m := range list[:min(len(list), mostNamed)] {
		name := c.path(m.Path)
		if m.BuildID != "" {
			name += " (build id " + m.BuildID + ")"
		}
		why := whyOf(m.Err)
		if c.by != nil {
			why = c.by.Text(why)
		}
		text = append(text, name+": "+output.Printable(why))
	}
	if more := len(list) - mostNamed; more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	return "files that the core does not hold were not found: " + strings.Join(text, "; ")
}

// path returns the path of a file that the core names. Names that must be hidden are removed.
func (c *coreFile) path(name string) string {
	if c.by != nil {
		name = c.by.Path(name)
	}
	return output.Printable(name)
}

// remedyOfRefused says how goprof can open files in a folder that only another user may enter. It returns "" if there
// are no such files, or if the folder must be hidden. goprof reads a core without the right to enter such folders,
// because the core could name any file of the host. goprof keeps that right only for a folder that the user names
// (guard.EnterFiles).
func (c *coreFile) remedyOfRefused(list []process.MissingFile) string {
	if c.by != nil {
		return ""
	}
	for _, m := range list {
		if !errors.Is(m.Err, fs.ErrPermission) {
			continue
		}
		sudo := "sudo "
		if os.Geteuid() == 0 {
			sudo = ""
		}
		return fmt.Sprintf("%sgoprof ... --debug-dir %s (goprof enters other users' folders only where you name one)", sudo,
			filepath.Join(cmp.Or(c.root, "/"), filepath.Dir(m.Path)))
	}
	return ""
}

// whyOf returns the reason of an error without the path.
func whyOf(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	}
	return err.Error()
}

func codeOfOpen(err error) exit.Code {
	if errors.Is(err, unpack.ErrNoRoom) {
		return exit.OutputFailed
	}
	return exit.BadInput
}

func remedyOfUnpack(name string, err error) string {
	switch {
	case errors.Is(err, unpack.ErrXZ):
		return "unxz " + name
	case errors.Is(err, unpack.ErrNoRoom):
		return "TMPDIR=/a/larger/disk goprof ..."
	}
	return ""
}

// moment returns when the core was written, or zero if that is not known.
func (o *openedCore) moment() time.Time {
	if st, err := os.Stat(o.from.file); err == nil {
		return st.ModTime()
	}
	return time.Time{}
}

// dump walks the threads of the core, and fills in the dump's facts about the core.
func (o *openedCore) dump(cmd *cobra.Command, opt postmortem.Options, hide bool) (*profile.Dump, error) {
	noLocks := ""
	if err := o.LocksKnown(); err != nil && opt.Locks {
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: locks are not shown: %v\n", err)
		opt.Locks, noLocks = false, err.Error()
	}
	dump, err := o.Dump(opt)
	if err != nil {
		return nil, &exit.Error{Code: exit.BadCore, What: "cannot read " + o.from.file, Why: whyOf(err), Err: err}
	}
	if at := o.moment(); !at.IsZero() {
		dump.At = at
	}
	dump.Core.File, dump.NoLocks = filepath.Base(o.from.file), noLocks
	if hide {
		naming.FoldDump(dump)
	}
	dump.Deadlocks = contention.Deadlocks(dump.Threads)
	if dump.Virtual != nil {
		tellCensus(cmd.ErrOrStderr(), dump.Virtual)
	}
	o.missing(cmd)
	return dump, nil
}
