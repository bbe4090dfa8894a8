//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/diagnose"
	"goprof/output"
	"goprof/session"
)

// program is a program that goprof starts and records. It shares goprof's terminal, so Ctrl-C reaches it directly.
// goprof does not end it.
type program struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // from its exit
}

func newProgram(argv []string) *program {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return &program{cmd: cmd, ended: make(chan struct{})}
}

func (p *program) pid() int { return p.cmd.Process.Pid }

// attachEvery is how often goprof checks whether a program has become a JVM: it may be a script that starts one.
const attachEvery = 5 * time.Millisecond

func (p *program) launch() error {
	if err := p.cmd.Start(); err != nil {
		e := &exit.Error{Code: exit.General, What: "cannot start " + p.cmd.Args[0], Err: err}
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			e.Err = path.Err
		}
		if look := (*exec.Error)(nil); errors.As(err, &look) {
			e.Err = look.Err
		}
		return e
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return nil
}

// attach attaches to the program as soon as it is a readable JVM.
func (p *program) attach(ctx context.Context) (*session.Session, error) {
	for {
		s, err := session.Attach(p.pid())
		if err == nil {
			return s, nil
		}
		cause := exit.Host().Explain(p.pid(), err)
		if cause.Class != diagnose.NotJVM && cause.Class != diagnose.Gone && cause.Class != diagnose.NoProcess {
			return nil, exit.CannotLook(p.pid(), err)
		}
		select {
		case <-p.ended:
			return nil, &exit.Error{Code: exit.NotJVM, What: "cannot record " + p.cmd.Args[0],
				Why:    "it ended before it was a JVM (" + p.status() + ")",
				Remedy: "goprof record -- java ..., or a script that becomes java by exec"}
		case <-ctx.Done():
			return nil, exit.CannotLook(p.pid(), err)
		case <-time.After(attachEvery):
		}
	}
}

// finish waits for the program's end and reports its status.
func (p *program) finish(talk io.Writer) {
	select {
	case <-p.ended:
	default:
		fmt.Fprintf(talk, "goprof: the recording is over; %s (process %d) goes on, and goprof waits for its end\n",
			output.Printable(p.cmd.Args[0]), p.pid())
		fmt.Fprintf(talk, "try: Ctrl-C ends both; kill %d ends goprof alone\n", os.Getpid())
		<-p.ended
	}
	if s := p.status(); s != "exit status 0" {
		fmt.Fprintf(talk, "goprof: %s: %s\n", output.Printable(p.cmd.Args[0]), s)
	}
}

// status returns how the program ended. The kernel may have reported the end to the sampler, which traces the program.
func (p *program) status() string {
	var e *exec.ExitError
	switch {
	case p.err == nil:
		return "exit status 0"
	case errors.As(p.err, &e):
		return e.Error()
	}
	return "ended"
}
