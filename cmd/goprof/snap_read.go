package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/output/redaction"
	"goprof/output/snap"
	"goprof/profile/redact"
)

// isSnap reports whether a command's argument is a snap. A number is a process, never a file.
func isSnap(args []string) bool {
	if len(args) != 1 {
		return false
	}
	_, err := strconv.Atoi(args[0])
	return err != nil && snap.IsNamed(args[0])
}

// keptForms are the endings of a part's files, by the command's format.
var keptForms = map[string]string{"text": ".txt", "json": ".json", "jstack": ".jstack.txt"}

// keptFlags are the flags that go with a snap. The other flags need a live JVM.
var keptFlags = []string{"json", "format", "output", "redact", "redact-key", "redact-map"}

// showKept shows a part of a snap as the command wrote it, and ends with the command's result.
func showKept(cmd *cobra.Command, name, part, format, to string, by *redact.Redactor) error {
	var wrong error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(keptFlags, f.Name) {
			wrong = usageError(cmd, fmt.Sprintf("--%s is for a JVM that runs: %s holds what was seen", f.Name, name),
				without(f.Name))
		}
	})
	if wrong != nil {
		return wrong
	}
	readFilesOnly(cmd, []string{name})
	r, err := snap.Open(name)
	if err != nil {
		return exit.CannotRead(name, err)
	}
	defer r.Close()
	file, err := r.File(part + keptForms[format])
	if err != nil {
		return noKept(name, err, by)
	}
	defer file.Close()
	out, err := outfile.Reserve(to)
	if err != nil {
		return exit.CannotWrite(err)
	}
	var failed error
	if _, err = out.Write(func(w io.Writer) error {
		failed = copyKept(sinking{w}, file, format, by)
		return failed
	}); failed != nil && !errors.As(failed, new(*sinkError)) {
		return exit.CannotRead(name, failed)
	} else if err != nil {
		return exit.CannotWrite(err)
	}
	return keptVerdict(name, part, r, by)
}

// noKept returns why a part is not in the file.
func noKept(name string, err error, by *redact.Redactor) error {
	if none := (*snap.NoPart)(nil); errors.As(err, &none) {
		if by != nil {
			none.Why = by.Text(none.Why)
		}
		return &exit.Error{Code: exit.Incomplete, What: "cannot show " + name, Why: none.Error(),
			Remedy: exit.CommandLine([]string{"unzip", "-p", name, snap.ReadmeFile})}
	}
	return exit.CannotRead(name, err)
}

// keptVerdict returns the command's result when the part was made.
func keptVerdict(name, part string, r *snap.Reader, by *redact.Redactor) error {
	c, err := r.Contents()
	if err != nil {
		return exit.CannotRead(name, err)
	}
	at := slices.IndexFunc(c.Parts, func(p snap.Part) bool { return p.Name == part })
	if at < 0 || c.Parts[at].Why == "" {
		return nil
	}
	p, code := &c.Parts[at], exit.Incomplete
	for _, known := range []exit.Code{exit.Deadlocked, exit.Found} {
		if p.Code == int(known) {
			code = known
		}
	}
	if by != nil {
		p.Why = by.Text(p.Why)
	}
	return &exit.Error{Code: code, What: name + ": " + p.Why}
}

// copyKept copies a part. The file may come from anyone, so terminal sequences are escaped.
func copyKept(to io.Writer, from io.Reader, format string, by *redact.Redactor) error {
	if by != nil {
		kind := redaction.Log
		if format == "json" {
			kind = redaction.JSON
		}
		return redaction.Rewrite(to, from, kind, by)
	}
	in, out := bufio.NewReader(from), bufio.NewWriter(to)
	for {
		r, size, err := in.ReadRune()
		switch {
		case err == io.EOF:
			return out.Flush()
		case err != nil:
			return err
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case format == "json" && output.Unsafe(r): // in a JSON string, where the escape means the same
			fmt.Fprintf(out, "\\u%04x", r)
		case output.Unsafe(r), r == utf8.RuneError && size == 1:
			out.WriteByte('?')
		default:
			out.WriteRune(r)
		}
	}
}

func keptFormat(json bool) string {
	if json {
		return "json"
	}
	return "text"
}
