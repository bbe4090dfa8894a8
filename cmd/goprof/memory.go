//go:build linux

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/memory"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/profile"
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

// memoryFlags are the flags of memory as given.
type memoryFlags struct {
	jvm  oneJVM
	core string
	json bool
	top  int
	readings
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
	}
	cmd.RunE = f.runs(f.run, &stdout)
	fs := cmd.Flags()
	fs.SortFlags = false
	f.jvm.addFlags(cmd)
	fs.IntVar(&f.top, "top", 5, "`number` of files, libraries and tables to show of each part")
	f.readings.add(fs)
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
	}
	if err := f.readings.check(cmd); err != nil {
		return err
	}
	pid, err := f.jvm.find(cmd, args)
	if err != nil {
		return err
	}
	s, err := attach(cmd, pid, false)
	if err != nil {
		return err
	}
	defer s.Close()
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
	return writeResult(cmd, outfile.Stdout, func(w io.Writer) error {
		if f.json {
			return output.MemoryJSON(w, last, growth)
		}
		return output.MemoryText(w, last, growth, f.top)
	})
}

// read makes the requested number of readings. Readings before an error are kept.
func (f *memoryFlags) read(ctx context.Context, log io.Writer, s *session.Session) (list []*profile.Memory, err error) {
	pid, reader := s.Process.PID(), (*memory.Reader)(nil)
	_, err = f.each(ctx, log, fmt.Sprintf("the memory of process %d", pid), func() (string, error) {
		m, err := session.Ask(s, func() (*profile.Memory, error) {
			if reader == nil {
				reader = memory.NewReader(s.Process, s.VM)
			}
			return reader.Read(true)
		})
		if err != nil {
			return "", exit.CannotLook(pid, err)
		}
		if m.MainClass = s.About().MainClass; f.by != nil {
			f.by.Memory(m)
		}
		list = append(list, m)
		return output.Size(m.Resident) + " in memory", nil
	})
	if err == nil && len(list) == 0 {
		err = &exit.Error{Code: exit.General, What: "interrupted before the memory was read"}
	}
	return list, err
}
