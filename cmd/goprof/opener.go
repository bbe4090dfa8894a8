package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/output"
)

// --open shows a page in the browser. goprof gives up the right to start programs before it reads anything (package
// guard). So a second goprof is started at the beginning, and told at the end what to show.

const openerName = "opener"

func addOpen(fs *pflag.FlagSet) {
	fs.Bool("open", false, "show the page in the browser, or say where it is")
}

// opener is the second goprof. A nil opener opens nothing.
type opener struct {
	cmd  *exec.Cmd
	told io.WriteCloser
}

var theOpener *opener

// startOpener starts it if the command line has --open. Without it, --open only says where the page is.
func startOpener(cmd *cobra.Command) {
	flag := cmd.Flags().Lookup("open")
	if flag == nil || flag.Value.String() != "true" {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	o := &opener{cmd: exec.Command(self, openerName)}
	o.cmd.Stdout, o.cmd.Stderr = os.Stdout, os.Stderr
	if o.told, err = o.cmd.StdinPipe(); err == nil && o.cmd.Start() == nil {
		theOpener = o
	}
}

// open shows a file or an address, and waits until that has begun.
func (o *opener) open(what string) {
	if o == nil || what == output.Stdout {
		return
	}
	theOpener = nil // it shows one page
	fmt.Fprintln(o.told, what)
	o.told.Close()
	o.cmd.Wait()
}

// newOpener is the command that the second goprof runs.
func newOpener() *cobra.Command {
	return &cobra.Command{
		Use:    openerName,
		Short:  "Show what it is told in a browser (started by --open)",
		Hidden: true,
		Args:   cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			what, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
			if what = strings.TrimSuffix(what, "\n"); err != nil || what == "" {
				return // there is no page
			}
			showPage(cmd.ErrOrStderr(), what)
		},
	}
}

// showPage shows a page. Of a recording it first draws the flame graph.
func showPage(talk io.Writer, what string) {
	address := strings.HasPrefix(what, "http://")
	if !address && filepath.Ext(what) != ".html" && filepath.Ext(what) != ".svg" {
		if self, err := os.Executable(); err == nil {
			draw := exec.Command(self, "flame", "--open", "--", what)
			draw.Stdout, draw.Stderr = os.Stdout, os.Stderr
			draw.Run()
		}
		return
	}
	if !address {
		if full, err := filepath.Abs(what); err == nil {
			what = full
		}
	}
	if program := browser(); program != "" {
		start := exec.Command(program, what)
		if start.Start() == nil {
			go start.Wait()
			return
		}
	}
	if !address {
		fmt.Fprintf(talk, "goprof: open it in a browser: %s\n", output.Printable(what))
	}
}

// browser is the program that opens pages, empty where there is no desktop. It does not run for another user: under
// sudo the browser would be root's.
func browser() string {
	program := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		program = "open"
	case cmp.Or(os.Getenv("DISPLAY"), os.Getenv("WAYLAND_DISPLAY")) == "" || os.Getenv("SUDO_USER") != "":
		return ""
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	return path
}
