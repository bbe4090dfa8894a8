//go:build linux

package product

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/profile"
)

// reserveBeside reserves the file for the account beside stacks of this name. The user has not named that file, so it
// replaces nothing but the account of older stacks of the same name.
func reserveBeside(stacks string) (*outfile.File, error) {
	file, err := outfile.Reserve(output.SummaryPath(stacks))
	if err == nil {
		err = mayReplace(file, stacks)
	}
	if err != nil {
		return nil, &exit.AccountError{Err: err}
	}
	return file, nil
}

// mayReplace returns an error if a file is there already, and it is not the account of these stacks.
func mayReplace(file *outfile.File, stacks string) error {
	if file.IsStream() {
		return nil
	}
	account, err := accountIn(file.Name())
	if err == nil && account != nil {
		err = isOf(account, stacks)
	}
	if err != nil {
		return &outfile.FileError{Name: file.Name(), Err: err}
	}
	return nil
}

// accountIn reads the account that is in a file. It is nil if there is no file, or nothing in it that can be lost.
func accountIn(name string) (*profile.Summary, error) {
	file, err := outfile.OpenRegular(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("a file is there that may be another's (%w)", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() == 0 {
		return nil, nil
	}
	account, err := output.ReadSummary(file)
	if err != nil || account.Meta.Version == "" { // the table of "goprof report --json" has none
		return nil, errors.New("a file is there that is no account of a recording")
	}
	return account, nil
}

// isOf returns an error if an account is not that of these stacks. One that does not tell whose it is (an older goprof
// wrote it, or it is redacted) belongs to the stacks that it stands beside.
func isOf(account *profile.Summary, stacks string) error {
	switch account.Of {
	case filepath.Base(stacks):
		return nil
	case "":
		if _, err := os.Lstat(stacks); err == nil {
			return nil
		}
		return fmt.Errorf("the account of another recording is there, and no %s", filepath.Base(stacks))
	case outfile.Stdout:
		return errors.New("the account of another recording is there, which went to standard output")
	}
	return fmt.Errorf("the account of another recording is there, %s", account.Of)
}
