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
	// mostAnswer and mostTalk bound how much of a command's output is kept, and of its messages.
	mostAnswer = 4 << 20
	mostTalk   = 64 << 10
	// endsWithin is how long a command may take to end when it was asked to: it lets go of threads, and publishes a
	// file.
	endsWithin = 5 * time.Second
)

// shown are the exit codes of commands that have looked, and say what they found.
var shown = []exit.Code{exit.OK, exit.Incomplete, exit.Changed, exit.Deadlocked, exit.Found}

// run runs a command in a process of its own. So the command gives up its own rights, can be ended, and frees its
// memory at its end. There is no shell.
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

// clean takes out what a command says of its progress, and where the server keeps its files.
func (m *Server) clean(talk string) string {
	var b strings.Builder
	for line := range strings.Lines(talk) {
		if !strings.HasPrefix(line, "goprof: looking at ") && !strings.HasPrefix(line, "goprof: recording ") {
			b.WriteString(strings.NewReplacer(m.dir+"/", "", m.own+"/", "").Replace(line))
		}
	}
	return b.String()
}

// atMostBytes keeps the beginning of what is written.
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
