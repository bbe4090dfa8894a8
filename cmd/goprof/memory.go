//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/memory"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/profile/redact"
	"goprof/sampler/guard"
	"goprof/session"
)

const memoryHelp = `memory says where the resident memory of a JVM is: heap, metaspace, code cache, thread stacks, the
collector's tables, malloc with direct buffers, mapped files, libraries, and what has no name. It
says how much the control group has left. The JVM needs no NativeMemoryTracking, is not stopped, and
may hang, be stopped or frozen.

-n 6 --every 10s reads six times and says which part grows, how fast, and when the control group's
limit is reached.

docs/memory.md has the rest.`

const memoryExample = `  goprof memory 1234                          or --pid 1234, or a part of its name
  goprof memory 1234 -n 6 --every 10s         which part grows, and until when
  goprof memory 1234 --json --redact default  pseudonyms in place of names`

// memoryFlags are what the command line asks for.
type memoryFlags struct {
	jvm        oneJVM
	core       string
	json       bool
	top, count int
	every      time.Duration
	by         *redact.Redactor // nil: all names may be shown
	redactFlags
}

func newMemory() *cobra.Command {
	f := &memoryFlags{}
	cmd := &cobra.Command{
		Use:     "memory {PID | NAME | --ns-pid PID [NAME]}",
		Short:   "Show where the resident memory of a JVM is, and what grows",
		Long:    memoryHelp,
		Example: memoryExample,
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.by, err = f.redactor(cmd, outfile.Stdout); err != nil {
				return err
			}
			return f.thenMap(f.run(cmd, args))
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.jvm.addFlags(cmd)
	fs.IntVar(&f.top, "top", 5, "`number` of files, libraries and tables to show of each part")
	fs.IntVarP(&f.count, "count", "n", 1, "`number` of readings")
	fs.Var(asTime(&f.every), "every", "`time` from one reading to the next, with -n (10s)")
	fs.BoolVar(&f.json, "json", false, "write JSON")
	fs.StringVar(&f.core, "core", "", "")
	fs.MarkHidden("core")
	f.redactFlags.add(cmd)
	return cmd
}

func (f *memoryFlags) run(cmd *cobra.Command, args []string) error {
	if isSnap(args) {
		return showKept(cmd, args[0], "memory", keptFormat(f.json), outfile.Stdout, f.by)
	}
	guard.Enter(f.toDump(outfile.Stdout))
	switch {
	case f.core != "":
		return usageError(cmd, "a core file does not say which pages were in memory: goprof heap --core "+f.core+
			" says what filled the heap")
	case f.top < 0 || f.top > maxHeapLines:
		return usageError(cmd, fmt.Sprintf("--top is between 0 and %d", maxHeapLines))
	case f.count < 1 || f.count > maxReadings:
		return usageError(cmd, fmt.Sprintf("-n is between 1 and %d", maxReadings))
	case f.count == 2:
		return usageError(cmd, "-n is 3 or more to see growth: two readings do not show how sure it is")
	case cmd.Flags().Changed("every") && f.count == 1:
		return usageError(cmd, "--every says when the next reading comes: -n N is missing")
	}
	f.every = cmp.Or(f.every, heapEvery)
	pid, err := f.jvm.find(cmd, args)
	if err != nil {
		return err
	}
	s, err := attach(cmd, pid, false)
	if err != nil {
		return err
	}
	defer s.Close()
	out, err := outfile.Reserve(outfile.Stdout)
	if err != nil {
		return exit.CannotWrite(err)
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	readings, err := f.read(ctx, cmd.ErrOrStderr(), s)
	if err != nil {
		return err
	}
	exit.TellNotes(cmd.ErrOrStderr(), notesOf(s, f.by))
	last, growth := readings[len(readings)-1], memory.Growth(readings)
	if f.count > 1 && growth == nil {
		last.Notes = append(last.Notes, tooFew(cmd.ErrOrStderr(), len(readings), ""))
	}
	_, err = out.Write(func(w io.Writer) error {
		if f.json {
			return output.MemoryJSON(w, last, growth)
		}
		return output.MemoryText(w, last, growth, f.top)
	})
	return exit.CannotWrite(err)
}

// read reads as often as was asked for. Readings before an error remain.
func (f *memoryFlags) read(ctx context.Context, log io.Writer, s *session.Session) (list []*profile.Memory, err error) {
	pid, reader := s.Process.PID(), (*memory.Reader)(nil)
	for next := time.Now(); len(list) < f.count && sleepUntil(ctx, next); next = next.Add(f.every) {
		m, err := session.Ask(s, func() (*profile.Memory, error) {
			if reader == nil {
				reader = memory.NewReader(s.Process, s.VM)
			}
			return reader.Read(true)
		})
		if err != nil && len(list) == 0 {
			return nil, exit.CannotLook(pid, err)
		} else if err != nil {
			fmt.Fprintf(log, "goprof: the memory of process %d cannot be read any more: %d of %d readings\n", pid, len(list),
				f.count)
			break
		}
		if m.MainClass = s.About().MainClass; f.by != nil {
			f.by.Memory(m)
		}
		if list = append(list, m); f.count > 1 {
			fmt.Fprintf(log, "goprof: reading %d of %d: %s in memory\n", len(list), f.count, output.Size(m.Resident))
		}
	}
	if len(list) == 0 {
		return nil, &exit.Error{Code: exit.General, What: "interrupted before the memory was read"}
	}
	return list, nil
}
