// Package destinations holds the flags for servers that receive profiles. All commands that send profiles have them.
// Its errors are for the user. Check and Rules make no connection and no spool.
package destinations

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/output/otlp"
	"goprof/output/parca"
	"goprof/output/pyroscope"
	"goprof/output/ship"
	"goprof/output/ship/wire"
	"goprof/profile/resource"
)

// Options say where profiles are sent.
type Options struct {
	OTLP, Pyroscope, Parca                      []string // URLs
	OTLPHeaders, PyroscopeHeaders, ParcaHeaders string   // files
	CA, Cert, Key                               string   // files
	Spool                                       string   // a folder for undelivered messages; empty: memory
	SpoolMax                                    int64    // MB
	Timeout                                     time.Duration
	Relabel                                     string // a file
	Version                                     string // of goprof
}

// maker wraps a constructor so that it returns the interface.
func maker[D ship.Destination](of func(wire.Options) (D, error)) func(wire.Options) (ship.Destination, error) {
	return func(o wire.Options) (ship.Destination, error) { return of(o) }
}

// Check returns an error for wrong options.
func (f *Options) Check() error {
	_, err := f.Rules()
	if err == nil {
		_, err = f.destinations()
	}
	return err
}

func (f *Options) destinations() (all []ship.Destination, err error) {
	for _, kind := range []struct {
		flag, headers string
		urls          []string
		make          func(wire.Options) (ship.Destination, error)
	}{
		{"otlp", f.OTLPHeaders, f.OTLP, maker(otlp.New)},
		{"pyroscope", f.PyroscopeHeaders, f.Pyroscope, maker(pyroscope.New)},
		{"parca", f.ParcaHeaders, f.Parca, maker(parca.New)},
	} {
		if kind.headers != "" && len(kind.urls) == 0 {
			return nil, &exit.Error{Code: exit.General, What: fmt.Sprintf("--%s-headers without --%[1]s", kind.flag),
				Remedy: fmt.Sprintf("--%s URL, or no --%[1]s-headers", kind.flag)}
		}
		for _, url := range kind.urls {
			d, err := kind.make(wire.Options{URL: url, HeaderFile: kind.headers, CAFile: f.CA, CertFile: f.Cert, KeyFile: f.Key,
				Agent: "goprof/" + f.Version})
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

// Rules returns the relabelling rules for attributes.
func (f *Options) Rules() (resource.Rules, error) {
	if f.Relabel == "" {
		return nil, nil
	}
	file, err := os.Open(f.Relabel)
	if err != nil {
		return nil, &exit.Error{Code: exit.BadInput, What: "cannot read --relabel", Err: err}
	}
	defer file.Close()
	rules, err := resource.ReadRules(file)
	if err != nil {
		return nil, &exit.Error{Code: exit.BadInput, What: "--relabel " + f.Relabel, Err: err,
			Remedy: "docs/engines.md has the form"}
	}
	return rules, nil
}

// Open opens the spool and begins to send. tell receives messages for the operator.
func (f *Options) Open(tell func(string)) (*ship.Shipper, error) {
	to, err := f.destinations()
	if err != nil {
		return nil, err
	}
	if len(to) == 0 {
		return nil, &exit.Error{Code: exit.General, What: "nothing says where to send to",
			Why:    "--otlp URL, --pyroscope URL or --parca URL do",
			Remedy: exit.CommandLine(os.Args) + " --otlp http://localhost:4318"}
	}
	s, err := ship.New(ship.Options{Spool: f.Spool, MaxBytes: f.SpoolMax << 20,
		Timeout: cmp.Or(f.Timeout, 30*time.Second), Tell: tell}, to...)
	if err != nil {
		return nil, &exit.Error{Code: exit.OutputFailed, What: "--spool " + f.Spool, Err: err}
	}
	return s, nil
}

// Undelivered returns the error for undelivered batches, or nil if there are none. kept says that a spool has them.
func Undelivered(s *ship.Shipper, err error, kept bool) error {
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
		again += " --spool goprof-spool" // the spool keeps the rest for the next run
	}
	return &exit.Error{Code: exit.Undelivered, What: "not everything was delivered", Why: strings.Join(why, "; "),
		Remedy: again}
}
