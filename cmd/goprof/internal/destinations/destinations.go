package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
	"goprof/output/otlp"
	"goprof/output/parca"
	"goprof/output/pyroscope"
	"goprof/output/ship"
	"goprof/output/ship/wire"
	"goprof/profile/resource"
)

// destinationFlags say where profiles are sent. Every command that sends profiles has them.
type destinationFlags struct {
	otlp, pyroscope, parca                      []string
	otlpHeaders, pyroscopeHeaders, parcaHeaders string
	ca, cert, key                               string
	spool                                       string
	spoolMax                                    int64 // MB
	timeout                                     time.Duration
	relabel                                     string
}

// destinationsHelp is for the help of such commands.
const destinationsHelp = `A URL begins with http://, https://, grpc:// (gRPC without TLS) or grpcs:// (with TLS),
and HOST:PORT follows. A flag may be given several times. Tokens belong in a file of
headers, never in a URL.`

func (f *destinationFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.otlp, "otlp", nil, "send OpenTelemetry's profiles to `URL`")
	flags.StringArrayVar(&f.pyroscope, "pyroscope", nil, "send to Grafana Pyroscope at `URL`")
	flags.StringArrayVar(&f.parca, "parca", nil, "send to Parca at `URL`")
	flags.StringVar(&f.otlpHeaders, "otlp-headers", "", "`file` of lines \"Name: value\" for --otlp")
	flags.StringVar(&f.pyroscopeHeaders, "pyroscope-headers", "", "`file` of headers for --pyroscope: X-Scope-OrgID")
	flags.StringVar(&f.parcaHeaders, "parca-headers", "", "`file` of headers for --parca")
	flags.StringVar(&f.ca, "tls-ca", "", "`file` of certificates (PEM) to trust beside the system's")
	flags.StringVar(&f.cert, "tls-cert", "", "`file` of goprof's own certificate (PEM)")
	flags.StringVar(&f.key, "tls-key", "", "`file` of that certificate's key (PEM)")
	flags.StringVar(&f.spool, "spool", "", "`folder` that keeps what is not delivered, over a restart too")
	flags.Int64Var(&f.spoolMax, "spool-max", 0, "`MB` that wait for each server at most (default: 256; in memory 32)")
	flags.Var(asTime(&f.timeout), "send-timeout", "how long one attempt to send may take (default: 30s)")
	flags.StringVar(&f.relabel, "relabel", "",
		"`file` of rules for attributes, in the form of Prometheus (relabel_configs)")
}

// maker turns a destination's constructor into one that returns the interface.
func maker[D ship.Destination](of func(wire.Options) (D, error)) func(wire.Options) (ship.Destination, error) {
	return func(o wire.Options) (ship.Destination, error) { return of(o) }
}

func (f *destinationFlags) destinations() (all []ship.Destination, err error) {
	for _, kind := range []struct {
		flag, headers string
		urls          []string
		make          func(wire.Options) (ship.Destination, error)
	}{
		{"otlp", f.otlpHeaders, f.otlp, maker(otlp.New)},
		{"pyroscope", f.pyroscopeHeaders, f.pyroscope, maker(pyroscope.New)},
		{"parca", f.parcaHeaders, f.parca, maker(parca.New)},
	} {
		if kind.headers != "" && len(kind.urls) == 0 {
			return nil, &exit.Error{Code: exit.General, What: fmt.Sprintf("--%s-headers without --%[1]s", kind.flag),
				Remedy: fmt.Sprintf("--%s URL, or no --%[1]s-headers", kind.flag)}
		}
		for _, url := range kind.urls {
			d, err := kind.make(wire.Options{URL: url, HeaderFile: kind.headers, CAFile: f.ca, CertFile: f.cert, KeyFile: f.key,
				Agent: "goprof/" + version()})
			if err != nil {
				return nil, &exit.Error{Code: exit.General, What: "--" + kind.flag, Err: err,
					Remedy: fmt.Sprintf("--%s http://HOST:PORT, https://, grpc:// or grpcs://", kind.flag)}
			}
			for _, other := range all {
				if other.Name() == d.Name() {
					return nil, &exit.Error{Code: exit.General, What: fmt.Sprintf("--%s %s is given twice", kind.flag, url)}
				}
			}
			all = append(all, d)
		}
	}
	return all, nil
}

func (f *destinationFlags) rules() (resource.Rules, error) {
	if f.relabel == "" {
		return nil, nil
	}
	file, err := os.Open(f.relabel)
	if err != nil {
		return nil, &exit.Error{Code: exit.BadInput, What: "cannot read --relabel", Err: err}
	}
	defer file.Close()
	rules, err := resource.ReadRules(file)
	if err != nil {
		return nil, &exit.Error{Code: exit.BadInput, What: "--relabel " + f.relabel, Err: err,
			Remedy: "docs/engines.md has the form"}
	}
	return rules, nil
}

// open opens the spool and begins to send. It calls tell with what an operator should know.
func (f *destinationFlags) open(tell func(string)) (*ship.Shipper, error) {
	to, err := f.destinations()
	if err != nil {
		return nil, err
	}
	if len(to) == 0 {
		return nil, &exit.Error{Code: exit.General, What: "nothing says where to send to",
			Why:    "--otlp URL, --pyroscope URL or --parca URL do",
			Remedy: exit.CommandLine(os.Args) + " --otlp http://localhost:4318"}
	}
	s, err := ship.New(ship.Options{Spool: f.spool, MaxBytes: f.spoolMax << 20,
		Timeout: cmp.Or(f.timeout, 30*time.Second), Tell: tell}, to...)
	if err != nil {
		return nil, &exit.Error{Code: exit.OutputFailed, What: "--spool " + f.spool, Err: err}
	}
	return s, nil
}

// undelivered returns the error for batches that servers have not taken, nil if they have taken all. kept: a spool has
// them.
func undelivered(s *ship.Shipper, err error, kept bool) error {
	var why []string
	for _, st := range s.Stats() {
		n := st.Refused.Batches + st.Dropped.Batches + st.Damaged.Batches + st.Queued.Batches
		if n > 0 || st.Rejected > 0 {
			why = append(why, fmt.Sprintf("%s: %d of %d batches (%s)", st.Name, n, st.Offered.Batches+st.Recovered.Batches,
				cmp.Or(st.LastError, "told above")))
		}
	}
	if len(why) == 0 {
		return err
	}
	again := exit.CommandLine(os.Args)
	if !kept {
		again += " --spool goprof-spool" // which keeps what is left, for the next time
	}
	return &exit.Error{Code: exit.Undelivered, What: "not everything was delivered", Why: strings.Join(why, "; "),
		Remedy: again}
}
