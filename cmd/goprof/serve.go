package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
)

const serveHelp = `serve shows recordings in a browser: those of a folder, or one file. A page is made when somebody
asks for it: flame graph, heat map, table. Each recording can also be loaded in the formats of
speedscope, the Firefox Profiler and pprof.

serve listens on this machine alone (127.0.0.1), and the address has a secret in it: other users of
the machine do not know it. Only files of the folder are read that look like recordings, none in
folders below it, and no symbolic links. Pages load nothing from elsewhere. To look from another
machine: ssh -L 8080:127.0.0.1:PORT HOST. serve runs until Ctrl-C.`

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
	shelf, err := openServed(name)
	if err != nil {
		return badInput(name, err)
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
	readFilesOnly(cmd, append(shelf.paths(), name))
	scratch, err := os.MkdirTemp("", "goprof-serve-")
	if err != nil {
		return outputFailed(err)
	}
	defer os.RemoveAll(scratch)
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	secret := make([]byte, 16)
	rand.Read(secret)
	root := "/" + hex.EncodeToString(secret) + "/"
	server := &http.Server{Handler: http.StripPrefix(root, &servedPages{served: shelf, scratch: scratch}),
		ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
	url := "http://" + at.Addr().String() + root
	fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s (Ctrl-C ends it)\n", url)
	theOpener.open(url)
	go server.Serve(at)
	<-ctx.Done()
	server.Close()
	return nil
}

// makePage runs a command of goprof, which writes what is asked for to a file.
func makePage(args ...string) error {
	root := newRoot()
	root.PersistentPreRun = nil // this process has given up its rights already
	root.SetArgs(args)
	root.SetOut(new(discarded))
	root.SetErr(new(discarded))
	return root.Execute()
}

// discarded is where messages of commands go: errors are shown on the page.
type discarded struct{}

func (*discarded) Write(b []byte) (int, error) { return len(b), nil }
