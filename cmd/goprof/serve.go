package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/pages"
)

const serveHelp = `serve shows recordings in a browser: those of a folder, or one file. Each page (flame
graph, heat map, table) is made when it is asked for. Each recording can also be loaded in the
formats of speedscope, the Firefox Profiler and pprof.

serve listens on this machine alone (127.0.0.1), and the address has a secret in it: other users of
the machine do not know it. Only files of the folder are read that look like recordings, none in
folders below it, and no symbolic links but a FILE that you name. Pages load nothing from elsewhere.
To look from another machine: ssh -L 8080:127.0.0.1:PORT HOST. serve runs until Ctrl-C.`

func newServe() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "serve {FILE | DIR}",
		Short: "Show recordings in a browser, on this machine alone",
		Long:  serveHelp,
		Example: `  goprof serve .
  goprof serve /var/lib/goprof --open
  goprof serve out.jfr --listen 127.0.0.1:8080`,
		Args: exactly("FILE or DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return runServe(cmd, args[0], listen) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "`address` of this machine, and a port (0: any)")
	addOpen(cmd.Flags())
	return cmd
}

func runServe(cmd *cobra.Command, name, listen string) error {
	shelf, err := pages.Open(name)
	if err != nil {
		return exit.CannotRead(name, err)
	}
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return usageError(cmd, fmt.Sprintf("--listen is an address of this machine alone, as 127.0.0.1:8080, not %q", listen),
			with("listen", "127.0.0.1:8080"))
	}
	at, err := net.Listen("tcp", listen)
	if err != nil {
		return &exit.Error{Code: exit.General, What: "cannot listen at " + listen, Why: err.Error(),
			Remedy: "another port, or no --listen"}
	}
	defer at.Close()
	readFilesOnly(cmd, append(shelf.Paths(), name))
	serving = true
	ctx, stop := interruptible(cmd.Context(), syscall.SIGHUP)
	defer stop()
	scratch, err := os.MkdirTemp("", "goprof-serve-")
	if err != nil {
		return exit.CannotWrite(err)
	}
	defer removeScratch(scratch)
	secret := make([]byte, 16)
	rand.Read(secret)
	root := "/" + hex.EncodeToString(secret) + "/"
	server := &http.Server{Handler: http.StripPrefix(root, shelf.Handler(scratch, makePage)),
		ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
	url := "http://" + at.Addr().String() + root
	fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s (Ctrl-C ends it)\n", url)
	theOpener.openAddress(url, scratch)
	go server.Serve(at)
	<-ctx.Done()
	server.Close()
	return nil
}

// serving says that this process is goprof serve.
var serving bool

// removeScratch removes the folder of pages. It does not wait for a page that is being made, which could take another
// minute. Such a page may appear in the folder during the removal, but not after it.
func removeScratch(folder string) {
	for range 100 {
		if os.RemoveAll(folder) == nil {
			return
		}
	}
}

// makePage runs a command of goprof that writes a page to a file. It returns the command's messages.
func makePage(args ...string) (string, error) {
	var said messages
	root := newRoot()
	root.PersistentPreRun = nil // this process has already given up its rights
	root.SetArgs(args)
	root.SetOut(&said)
	root.SetErr(&said)
	err := root.Execute()
	return said.String(), err
}

// messages holds a command's messages, up to a limit.
type messages struct{ strings.Builder }

const mostMessages = 16 << 10

func (m *messages) Write(b []byte) (int, error) {
	m.Builder.Write(b[:min(len(b), max(mostMessages-m.Len(), 0))])
	return len(b), nil
}
