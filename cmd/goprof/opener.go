package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/outfile"
)

// --open shows a page in the browser. goprof gives up the right to start programs before it reads anything (package
// guard). So it starts a second goprof at the beginning, and sends it the file to show at the end.

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

// startOpener starts the second goprof if the command line has --open. If that fails, --open only reports where the
// page is.
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

// open shows a file, and waits until that has begun. If the second goprof has ended, open reports where the file is.
func (o *opener) open(what string) {
	if o == nil || what == outfile.Stdout {
		return
	}
	theOpener = nil // the second goprof shows one page
	_, err := fmt.Fprintln(o.told, what)
	o.told.Close()
	if cmp.Or(o.cmd.Wait(), err) != nil {
		tellWhere(os.Stderr, what)
	}
}

// openAddress opens an address that contains a secret in the user's browser. All users of the machine can read the
// browser's arguments. So the argument is a page in folder that redirects to the address. Without a desktop openAddress
// does nothing: the address was already printed.
func (o *opener) openAddress(url, folder string) {
	if o == nil || browser() == "" {
		return
	}
	page := filepath.Join(folder, "address.html")
	text := `<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer">` +
		`<meta http-equiv="refresh" content="0;url=` + url + `"><title>goprof</title><a href="` + url + `">goprof</a></html>`
	if os.WriteFile(page, []byte(text), 0o600) == nil {
		o.open(page)
	}
}

// newOpener returns the command that the second goprof runs.
func newOpener() *cobra.Command {
	return &cobra.Command{
		Use:    openerName,
		Short:  "Show a page in a browser (started by --open)",
		Hidden: true,
		Args:   cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			outliveSignals()
			what, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
			if what = strings.TrimSuffix(what, "\n"); err != nil || what == "" {
				return // there is no page
			}
			showPage(cmd.ErrOrStderr(), what)
		},
	}
}

// outliveSignals keeps Ctrl-C, which often ends a recording, from ending the second goprof, which shows the page
// afterwards. It uses handlers, because programs that it starts would inherit ignored signals.
func outliveSignals() {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// isPage reports whether a browser shows a file of that name.
func isPage(name string) bool { return filepath.Ext(name) == ".html" || filepath.Ext(name) == ".svg" }

// tellWhere says how to open a page that is not shown.
func tellWhere(talk io.Writer, what string) {
	if !isPage(what) {
		fmt.Fprintf(talk, "goprof: the page is not drawn: %s\n", exit.CommandLine([]string{"goprof", "flame", what}))
		return
	}
	fmt.Fprintf(talk, "goprof: open it in a browser: %s\n", output.Printable(what))
}

// showPage shows a page. For a recording it first draws the flame graph.
func showPage(talk io.Writer, what string) {
	if !isPage(what) {
		if self, err := os.Executable(); err == nil {
			draw := exec.Command(self, "flame", "--open", "--", what)
			draw.Stdout, draw.Stderr = os.Stdout, os.Stderr
			draw.Run()
		}
		return
	}
	if full, err := filepath.Abs(what); err == nil {
		what = full
	}
	if program := browser(); program != "" {
		start := exec.Command(program, what)
		start.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for goprof, not for the browser
		if start.Start() == nil {
			go start.Wait()
			return
		}
	}
	tellWhere(talk, what)
}

// browser returns the program that opens pages, or "" if there is no desktop. It returns "" for root and under sudo,
// because the desktop belongs to another user then.
func browser() string {
	program := "xdg-open"
	switch {
	case os.Geteuid() == 0, os.Getenv("SUDO_USER") != "":
		return ""
	case runtime.GOOS == "darwin":
		program = "open"
	case cmp.Or(os.Getenv("DISPLAY"), os.Getenv("WAYLAND_DISPLAY")) == "":
		return ""
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	return path
}
