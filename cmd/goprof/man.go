package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
	"goprof/output/outfile"
)

// newMan is for packagers. It replaces cobra's generator, which would add a markdown library to the binary.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a folder",
		Example: "  goprof man /usr/local/share/man/man1",
		Args:    exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return exit.CannotWrite(err)
			}
			return writeManPages(cmd.Root(), args[0])
		},
	}
}

func writeManPages(cmd *cobra.Command, dir string) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	file, err := outfile.Reserve(filepath.Join(dir, name+".1"))
	if err != nil {
		return exit.CannotWrite(err)
	}
	written, err := file.Write(func(w io.Writer) error { return manPage(w, cmd, name) })
	if err != nil {
		return exit.CannotWrite(err)
	}
	if err := os.Chmod(written, 0o644); err != nil { // all users read manual pages
		return exit.CannotWrite(err)
	}
	for _, sub := range cmd.Commands() {
		if sub.Hidden || sub.Name() == "help" {
			continue
		}
		if err := writeManPages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// manPage writes one page with the macros of man(7).
func manPage(to io.Writer, cmd *cobra.Command, name string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH %q 1\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	section(&b, "DESCRIPTION", cmd.Long, ".PP\n")
	if flags := cmd.LocalFlags(); flags.HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n")
		flags.VisitAll(func(f *pflag.Flag) { manFlag(&b, f) })
	}
	section(&b, "EXAMPLES", cmd.Example, ".PP\n.nf\n")
	if !cmd.HasParent() {
		b.WriteString(".SH EXIT STATUS\n")
		for _, c := range exit.Codes {
			fmt.Fprintf(&b, ".TP\n%d\n%s\n", c.Code, roff(c.Meaning))
			for _, cause := range c.Causes {
				fmt.Fprintf(&b, ".br\n\\- %s", roff(cause.When))
				if cause.Remedy != "" {
					fmt.Fprintf(&b, " (%s)", roff(cause.Remedy))
				}
				b.WriteByte('\n')
			}
		}
	}
	_, err := to.Write(b.Bytes())
	return err
}

func section(b *bytes.Buffer, title, text, before string) {
	if text == "" {
		return
	}
	fmt.Fprintf(b, ".SH %s\n%s%s\n", title, before, roff(text))
	if strings.Contains(before, ".nf") {
		b.WriteString(".fi\n")
	}
}

func manFlag(b *bytes.Buffer, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	value, usage := pflag.UnquoteUsage(f)
	short := ""
	if f.Shorthand != "" {
		short = "-" + f.Shorthand + ", "
	}
	fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(short+"--"+f.Name+" "+value)), roff(usage))
}

// roff escapes troff's commands.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
