// Command release writes the documents that belong to a release of goprof.
//
//	release notices                    the licences of all code in the binary: cmd/goprof/THIRD_PARTY_NOTICES
//	release sbom BINARY                which modules a binary was built of, as CycloneDX
//	release provenance BINARY...       how binaries were built, as an in-toto statement
//
// It runs in the repository's root and writes to standard output.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "notices":
		modules, err := linked(".")
		if err != nil {
			return err
		}
		return writeNotices(w, modules)
	case len(args) == 2 && args[0] == "sbom":
		modules, err := linked(".")
		if err != nil {
			return err
		}
		return writeSBOM(w, args[1], modules)
	case len(args) >= 2 && args[0] == "provenance":
		return writeProvenance(w, args[1:])
	}
	return errors.New("use: release notices, release sbom BINARY, or release provenance BINARY and more")
}
