//go:build linux

package snapper

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"goprof/agent"
	"goprof/agent/config"
	"goprof/cmd/goprof/exit"
)

const (
	// endsWithin limits how long the ending agent waits for the second process, which finishes a snap first.
	endsWithin = 5 * time.Second
	// livesFor is the least lifetime of a second process that is restarted at once.
	livesFor = 10 * time.Second
)

// keeper runs the second process, and sends it the list of JVMs.
type keeper struct {
	command func() *exec.Cmd
	say     func(string)
	lives   time.Duration
	began   time.Time
	to      io.WriteCloser
	died    <-chan error   // nil: there is no second process
	jvms    chan []int     // the newest list
	asked   chan os.Signal // a signal requests snaps of all JVMs
	end     chan struct{}
	ended   chan struct{}
}

// Keep starts the second process, and restarts it when it dies. It gets the list of JVMs from the agent. end ends the
// process.
func Keep(c *config.Config, a *agent.Agent, talk io.Writer, say func(string)) (end func(), err error) {
	on := &c.Snaps.On
	if !on.Any() {
		return func() {}, nil
	}
	if err := os.MkdirAll(c.Snaps.Dir, 0o700); err != nil {
		return nil, &exit.Error{Code: exit.OutputFailed, What: "cannot keep snaps in " + c.Snaps.Dir, Err: err}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{Command, "--on", on.String(), "--dir", c.Snaps.Dir}
	if c.Files.Dir != "" {
		args = append(args, "--files", c.Files.Dir)
	}
	if c.Redact != "" {
		args = append(args, "--redact", c.Redact)
	}
	if c.RedactKey != "" {
		args = append(args, "--redact-key", c.RedactKey)
	}
	k := newKeeper(func() *exec.Cmd {
		cmd := exec.Command(self, args...)
		cmd.Stderr = talk
		return cmd
	}, say)
	if on.Signal {
		signal.Notify(k.asked, syscall.SIGUSR2)
	}
	if err := k.start(); err != nil {
		return nil, err
	}
	go k.keep()
	a.Watch(k.tell)
	return k.stop, nil
}

func newKeeper(command func() *exec.Cmd, say func(string)) *keeper {
	return &keeper{command: command, say: say, lives: livesFor, jvms: make(chan []int, 1),
		asked: make(chan os.Signal, 1), end: make(chan struct{}), ended: make(chan struct{})}
}

func (k *keeper) start() (err error) {
	cmd := k.command()
	if k.to, err = cmd.StdinPipe(); err != nil {
		return err
	}
	k.began = time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	died := make(chan error, 1)
	go func() { died <- cmd.Wait() }()
	k.died = died
	return nil
}

// tell hands over a list without blocking. It replaces a list that was not read.
func (k *keeper) tell(pids []int) {
	select {
	case <-k.jvms:
	default:
	}
	k.jvms <- pids
}

// stop ends the second process.
func (k *keeper) stop() {
	close(k.end)
	select {
	case <-k.ended:
	case <-time.After(endsWithin):
	}
}

// keep writes to the second process, and restarts it when it dies.
func (k *keeper) keep() {
	defer close(k.ended)
	var list []int
	var again <-chan time.Time
	for {
		select {
		case list = <-k.jvms:
			k.write("jvms", list)
		case <-k.asked:
			if k.died == nil {
				k.say("SIGUSR2: no snaps are taken: the process that takes them has ended")
			}
			k.write("all", nil)
		case err := <-k.died:
			k.died = nil
			k.say(fmt.Sprintf("the process that takes snaps has ended: %v", err))
			again = time.After(max(0, k.lives-time.Since(k.began)))
		case <-again:
			again = k.restart()
			k.write("jvms", list)
		case <-k.end:
			if k.died != nil {
				k.to.Close()
				<-k.died
			}
			return
		}
	}
}

// write writes a line. If the second process has died, k.died reports it.
func (k *keeper) write(word string, pids []int) {
	if k.died != nil {
		fmt.Fprintln(k.to, strings.TrimSpace(word+" "+strings.Trim(fmt.Sprint(pids), "[]")))
	}
}

// restart starts another process, or returns the time of the next attempt. An agent that has given up its rights cannot
// start programs (package guard).
func (k *keeper) restart() (again <-chan time.Time) {
	err := k.start()
	switch {
	case err == nil:
		k.say("another process takes snaps now")
	case errors.Is(err, fs.ErrPermission):
		k.say("snaps are off until the agent is restarted: it has given up the right to start programs")
	default:
		k.say(fmt.Sprintf("no other process can take snaps, the next try is in %v: %v", k.lives, err))
		return time.After(k.lives)
	}
	return nil
}
