package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
	"goprof/heap/heapdump"
	"goprof/output"
	"goprof/output/convert"
	"goprof/output/outfile"
	"goprof/profile/redact"
	"goprof/vmstructs"
)

const (
	// hprofFormat is the name of the format for -f. hprofEnds is the ending of such files.
	hprofFormat = "hprof"
	hprofEnds   = ".hprof"
)

// forHeapDump uses input as the core file. It returns an error for flags of convert that do not go with a heap dump.
func (c *coreFile) forHeapDump(cmd *cobra.Command, input string) (err error) {
	c.file = input
	may := []string{"output", "format", "redact", "redact-key", "redact-map", "root", "debug-dir"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(may, f.Name) && cmd.InheritedFlags().Lookup(f.Name) == nil {
			err = usageError(cmd, "--"+f.Name+" is not for heap dumps")
		}
	})
	return cmp.Or(err, c.checkFolders(cmd))
}

func (c *coreFile) writeHeapDump(cmd *cobra.Command, to string) error {
	defer cleanOnSignal()()
	out, err := outfile.Reserve(to)
	if err != nil {
		return exit.CannotWrite(err)
	}
	o, err := c.open(cmd)
	if err != nil {
		return err
	}
	defer o.Close()
	opt := heapDumpOptions(c.by)
	opt.Threads, opt.Size = o.HeapThreads, uint64(max(o.file.Size, 1))
	var res *heapdump.Result
	_, err = out.Write(func(w io.Writer) (err error) {
		if res, err = heapdump.Write(w, o.VM, opt); err != nil && !errors.As(err, new(*heapdump.WriteError)) {
			err = &convert.SourceError{Err: err}
		}
		return err
	})
	o.missing(cmd)
	if err != nil {
		return heapDumpFailed(err, "cannot make a heap dump of "+c.file, heapOfCore(cmd, c.file))
	}
	tellHeapDump(cmd, to, res)
	return nil
}

// heapOfCore returns the command that shows what fills the heap of a core file, with the same pseudonyms.
func heapOfCore(cmd *cobra.Command, file string) string {
	args := []string{"goprof", "heap", "--core", file}
	for _, name := range []string{"redact", "redact-key", "redact-map", "root"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			args = append(args, "--"+name, f.Value.String())
		}
	}
	return exit.CommandLine(args)
}

func heapDumpOptions(by *redact.Redactor) heapdump.Options {
	opt := heapdump.Options{At: time.Now(), Blank: by != nil}
	if by != nil {
		opt.Names = by
	}
	return opt
}

// heapDumpFailed says why there is no heap dump. instead is a command that still shows the heap.
func heapDumpFailed(err error, what, instead string) error {
	var source *convert.SourceError
	if !errors.As(err, &source) {
		return exit.CannotWrite(err)
	}
	e := &exit.Error{Code: exit.General, What: what, Why: whyOf(source.Err), Err: source.Err}
	switch {
	case errors.Is(source.Err, heapdump.ErrCancelled):
		e.Why = "interrupted"
	case errors.Is(source.Err, vmstructs.ErrMoving):
		e.Why = "a collection was moving objects, so references do not lead to where the objects are"
		e.Remedy = instead + " (it counts what can be read)"
	case errors.Is(source.Err, vmstructs.ErrNotDumped):
		e.Why = "this JVM does not say where all objects are, or where their references lead (ZGC of 11 and 27, or without " +
			"symbols of libjvm.so; Parallel with UseNUMA)"
		e.Remedy = instead + " (it counts what can be read), or jcmd PID GC.heap_dump FILE while the JVM answers"
	case errors.Is(source.Err, vmstructs.ErrMissing):
		e.Why = "this JVM does not export all that a heap dump needs: " + whyOf(source.Err)
		e.Remedy = instead
	}
	return e
}

// tellHeapDump reports what was written, and what is missing.
func tellHeapDump(cmd *cobra.Command, to string, res *heapdump.Result) {
	w := cmd.ErrOrStderr()
	for _, text := range res.Missing() {
		fmt.Fprintf(w, "goprof: the heap dump lacks %s\n", text)
	}
	if to != outfile.Stdout {
		fmt.Fprintf(w, "written    %s: hprof, %d objects of %s, %d classes, %d threads (%s)\n", output.Printable(to),
			res.Objects, output.Size(res.Bytes), res.Classes, res.Threads, output.Size(uint64(res.Written)))
	}
}

func isHeapDump(name, format string) bool {
	return format == hprofFormat || format == "" && filepath.Ext(name) == hprofEnds
}
