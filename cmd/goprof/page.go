package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output/flame"
	"goprof/output/format"
	"goprof/output/outfile"
)

// drawn is a page or a picture of a recording.
type drawn struct {
	output        string // as given by the user; empty: piped or beside
	piped, beside string // default names, for a recording from standard input and from a file
}

// draw opens a recording, makes its page, reports what was drawn, and shows it with --open.
func (p *drawn) draw(cmd *cobra.Command, f *inputFlags, input string,
	draw func(*openInput, *outfile.File) (name, about string, err error)) error {
	if err := exit.NotItself(input, p.output); err != nil {
		return err
	}
	if err := checkOpen(cmd, p.output, format.HTML); err != nil {
		return err
	}
	defer cleanOnSignal()()
	file, err := p.reserve(input)
	if err != nil {
		return exit.CannotWrite(err)
	}
	in, err := f.open(cmd, input)
	if err != nil {
		return err
	}
	defer in.Close()
	name, about, err := draw(in, file)
	if err != nil {
		return err
	}
	in.leftOut(cmd)
	if name != outfile.Stdout {
		fmt.Fprintln(cmd.ErrOrStderr(), about)
	}
	theOpener.open(name)
	return nil
}

func (p *drawn) reserve(input string) (*outfile.File, error) {
	switch {
	case p.output != "":
		return outfile.Reserve(p.output)
	case input == outfile.Stdout:
		return outfile.ReserveNumbered(p.piped, nil)
	}
	return outfile.ReserveAgain(p.beside, flame.Mark(input))
}
