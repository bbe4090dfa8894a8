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

// reserveBeside reserves the file for the account beside the stacks. The user has not named that file, so it may only
// replace an older account of the same stacks.
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

// mayReplace returns an error if the file exists and is not the account of these stacks.
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

// accountIn reads the account in a file. It returns nil if there is no file, or an empty one.
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
	if err != nil || account.Meta.Version == "" { // the table of "goprof report --json" has no version
		return nil, errors.New("a file is there that is no account of a recording")
	}
	return account, nil
}

// isOf returns an error if an account belongs to other stacks. An account that does not name its stacks (from an older
// goprof, or redacted) belongs to the stacks beside it.
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
