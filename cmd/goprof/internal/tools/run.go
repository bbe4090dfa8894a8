package tools

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"goprof/cmd/goprof/exit"
)

const (
	// mostAnswer and mostTalk limit how much of a command's output and of its messages is kept.
	mostAnswer = 4 << 20
	mostTalk   = 64 << 10
	// endsWithin is the time that a command gets to end: it releases threads, and publishes a file.
	endsWithin = 5 * time.Second
)

// shown are the exit codes of commands whose output is a result.
var shown = []exit.Code{exit.OK, exit.Incomplete, exit.Changed, exit.Deadlocked, exit.Found}

// run runs a command in another process, without a shell. So the command gives up its own rights, can be killed, and
// frees its memory at its end.
func (m *Server) run(ctx context.Context, args []string) (string, error) {
	answer, talk := atMostBytes{most: mostAnswer}, atMostBytes{most: mostTalk}
	cmd := exec.CommandContext(ctx, m.goprof, args...)
	cmd.Stdout, cmd.Stderr = &answer, &talk
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, endsWithin
	err := cmd.Run()
	said := m.clean(talk.String())
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if cmd.ProcessState == nil {
		return "", err
	}
	if !slices.Contains(shown, exit.Code(cmd.ProcessState.ExitCode())) {
		return "", errors.New(strings.TrimSpace(said + answer.String()))
	}
	return answer.String() + said, nil
}

// clean removes progress messages, and the server's own paths.
func (m *Server) clean(talk string) string {
	var b strings.Builder
	for line := range strings.Lines(talk) {
		if !strings.HasPrefix(line, "goprof: looking at ") && !strings.HasPrefix(line, "goprof: recording ") {
			b.WriteString(strings.NewReplacer(m.dir+"/", "", m.own+"/", "").Replace(line))
		}
	}
	return b.String()
}

// atMostBytes keeps the first bytes that are written.
type atMostBytes struct {
	bytes.Buffer
	most int
	cut  bool
}

func (w *atMostBytes) Write(b []byte) (int, error) {
	if room := w.most - w.Len(); len(b) > room {
		w.Buffer.Write(b[:room])
		if !w.cut {
			w.cut, w.most = true, w.Len()
			w.Buffer.WriteString("\n[cut: there was more; ask for fewer rows or one thread]\n")
			w.most = w.Len()
		}
		return len(b), nil
	}
	return w.Buffer.Write(b)
}
