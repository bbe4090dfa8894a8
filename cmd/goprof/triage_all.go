//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/terminal"
	"goprof/diagnose"
	"goprof/output"
	"goprof/output/findings"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/sampler/guard"
	"goprof/session"
	"goprof/triage"
	"goprof/triage/examine"
)

// triageAtOnce is how many JVMs triage --all examines at a time. Each needs two engines.
const triageAtOnce = 4

// triagedJVM is a JVM of triage --all in JSON. Problem says why the JVM could not be examined. Then it has no findings.
type triagedJVM struct {
	PID     int    `json:"pid"`
	Main    string `json:"main"`
	Problem string `json:"problem,omitempty"`
	profile.Triage
	err error
}

// everyJVM triages all JVMs of the host. It lists the worst first.
func (f *triageFlags) everyJVM(cmd *cobra.Command) error {
	if err := checkProc(); err != nil {
		return err
	}
	defer session.StopAfterSuspend()()
	guard.Enter(guard.ToRecord)
	makeRoom(2 * triageAtOnce)
	jvms := exit.Host().JVMs()
	if len(jvms) == 0 {
		return &exit.Error{Code: exit.NoSuchProcess, What: "goprof sees no JVM on this host", Remedy: "goprof doctor"}
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	line := terminal.NewStatusLine(cmd.ErrOrStderr())
	defer line.Wipe()
	if !line.Shown() {
		fmt.Fprintf(line, "goprof: looking at %d JVMs, each for %v, %d at a time\n", len(jvms), f.duration,
			triageAtOnce)
	}
	all := f.triageEach(ctx, line, jvms)
	if ctx.Err() != nil {
		return &exit.Error{Code: exit.General, What: "interrupted: nothing can be said yet"}
	}
	if len(all) == 0 {
		return &exit.Error{Code: exit.TargetGone, What: "all JVMs of this host have ended meanwhile", Remedy: "goprof list"}
	}
	sortTriaged(all)
	if err := writeResult(cmd, outfile.Stdout, func(w io.Writer) error {
		if f.json {
			return output.WriteJSON(w, map[string]any{"jvms": all})
		}
		return triagedText(w, all)
	}); err != nil {
		return err
	}
	return worstOf(all)
}

// triageEach examines the JVMs, some at a time. JVMs that end meanwhile are left out.
func (f *triageFlags) triageEach(ctx context.Context, line *terminal.StatusLine, jvms []diagnose.JVM) []*triagedJVM {
	all, free := make([]*triagedJVM, len(jvms)), make(chan struct{}, triageAtOnce)
	var names sync.Mutex
	var each sync.WaitGroup
	done := 0
	for i := range jvms {
		free <- struct{}{}
		each.Go(func() {
			defer func() { <-free }()
			t := triageOne(ctx, &jvms[i], f)
			names.Lock()
			defer names.Unlock()
			if f.by != nil {
				f.by.Triage(&t.Triage)
				t.Main, t.Problem = f.by.Program(t.Main), f.by.Text(t.Problem)
			}
			all[i] = t
			done++
			line.Draw(fmt.Sprintf("%d of %d JVMs  (Ctrl-C ends)", done, len(jvms)))
		})
	}
	each.Wait()
	return slices.DeleteFunc(all, func(t *triagedJVM) bool {
		e := (*exit.Error)(nil)
		return errors.As(t.err, &e) && (e.Code == exit.TargetGone || e.Code == exit.NoSuchProcess)
	})
}

func triageOne(ctx context.Context, jvm *diagnose.JVM, f *triageFlags) *triagedJVM {
	t := &triagedJVM{PID: jvm.PID, Main: jvm.Main, Triage: profile.Triage{Findings: []profile.Finding{},
		Notes: []string{}, Unknown: []profile.Unknown{}}}
	h := diagnose.Host{Command: exit.CommandLine([]string{os.Args[0], "triage", fmt.Sprint(jvm.PID)})}
	err := h.Traced(jvm.PID)
	var evidence *triage.Evidence
	var notes []string
	if err == nil && ctx.Err() == nil {
		evidence, notes, err = examine.Gather(ctx, jvm.PID, examine.Options{Duration: f.duration,
			Tell: func(string) {}})
	}
	switch {
	case jvm.Problem != nil:
		t.err = exit.OfCause(fmt.Sprintf("cannot look at process %d", jvm.PID), *jvm.Problem, nil)
	case err != nil:
		t.err = exit.OfCause(fmt.Sprintf("cannot look at process %d", jvm.PID), h.Explain(jvm.PID, err), err)
	case evidence != nil:
		found := triage.Judge(evidence)
		t.Findings, t.Unknown = append(t.Findings, found.Findings...), append(t.Unknown, found.Unknown...)
		t.Notes = append(append(t.Notes, found.Notes...), notes...)
	}
	if t.err != nil {
		t.Problem = t.err.Error()
	}
	return t
}

// rank orders JVMs by their number of findings of each severity. JVMs that could not be examined come before those
// without findings.
func (t *triagedJVM) rank() []int {
	rank := make([]int, 4)
	for _, f := range t.Findings {
		rank[slices.Index([]profile.Severity{profile.Critical, profile.Warning, profile.Notice}, f.Severity)]++
	}
	if t.err != nil {
		rank[3] = 1
	}
	return rank
}

// sortTriaged sorts the worst first.
func sortTriaged(all []*triagedJVM) {
	slices.SortStableFunc(all, func(a, b *triagedJVM) int { return slices.Compare(b.rank(), a.rank()) })
}

// triagedText writes a line for each JVM, with its findings below.
func triagedText(to io.Writer, all []*triagedJVM) error {
	var b strings.Builder
	for _, t := range all {
		fmt.Fprintf(&b, "%d %s: ", t.PID, output.Printable(cmp.Or(profile.ProgramName(t.Main), "-")))
		switch {
		case t.err != nil:
			fmt.Fprintf(&b, "%s\n", output.Printable(t.Problem))
		case len(t.Findings) == 0:
			fmt.Fprintf(&b, "%s\n", findings.Nothing(&t.Triage))
		default:
			b.WriteString("\n")
			var text strings.Builder
			findings.Text(&text, &t.Triage)
			for line := range strings.Lines(text.String()) {
				b.WriteString(strings.TrimRight("  "+line, " \n") + "\n")
			}
		}
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// worstOf returns the command's result: that of triage for the worst JVM.
func worstOf(all []*triagedJVM) error {
	var found []string
	var unknown error
	for _, t := range all {
		if len(t.Findings) > 0 {
			found = append(found, fmt.Sprintf("process %d: %s", t.PID, t.Findings[0].ID))
		}
		unknown = cmp.Or(unknown, t.err)
	}
	if len(found) > 0 {
		return &exit.Error{Code: exit.Found, What: strings.Join(found, ", ")}
	}
	return unknown
}
