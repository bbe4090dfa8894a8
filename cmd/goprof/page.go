package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output/flame"
	"goprof/output/format"
	"goprof/output/outfile"
)

// drawn is a page, or a picture, of a recording.
type drawn struct {
	output        string // as the user has named it; empty: piped or beside
	piped, beside string // its name where the recording comes from standard input, and else
}

// draw opens a recording, has draw make the page of it, says what was drawn, and shows it where that was asked for.
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
