package folderlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How a goprof takes a folder over from another one, with two file names. The new goprof writes the time of the change
// into the file asked. The old one, which has the folder, looks for that file each second, and agrees by renaming it to
// agreed. Only one of them can rename or remove the file, so both know the same answer, even if one of them is late.
// The time is by the wall clock, which both can read.
const (
	asked  = ".goprof-next"
	agreed = ".goprof-next-agreed"
	draft  = ".goprof-next-draft"
)

const (
	// askAhead is how long before the change the question is asked. The other goprof may agree until withdrawAhead before
	// the change. So it has withdrawAhead to end in time.
	askAhead, withdrawAhead = 3 * time.Second, time.Second
	// askEvery is the time between two checks for the answer.
	askEvery = 20 * time.Millisecond
)

// ErrNoAnswer: the goprof that uses the folder did not agree. It may be an older version, or stopped.
var ErrNoAnswer = errors.New("the goprof that uses the folder does not answer")

// Ask asks the goprof that has a folder to end at a time, which it returns. The other goprof may agree until
// withdrawAhead before that time. If it does not agree, nothing has changed.
func Ask(ctx context.Context, dir string) (at time.Time, err error) {
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return at, err
	}
	defer folder.Close()
	folder.Remove(agreed) // left by an earlier one
	at = time.Now().Add(askAhead)
	if err := writeMoment(folder, at); err != nil {
		return at, err
	}
	for time.Until(at) > withdrawAhead && ctx.Err() == nil {
		if _, err := folder.Lstat(asked); err != nil {
			break
		}
		time.Sleep(askEvery)
	}
	if folder.Remove(asked) == nil {
		return at, errors.Join(ErrNoAnswer, ctx.Err())
	}
	folder.Remove(agreed)
	return at, nil
}

func writeMoment(folder *os.Root, at time.Time) error {
	folder.Remove(draft)
	f, err := folder.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, at.UnixNano())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return folder.Rename(draft, asked)
}

// Asked agrees to end if another goprof has asked this one to. It returns the time of the change. It does not wait.
func Asked(dir string) (at time.Time, ok bool) {
	if _, err := os.Lstat(filepath.Join(dir, asked)); err != nil {
		return at, false // the usual case
	}
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return at, false
	}
	defer folder.Close()
	text, err := readQuestion(folder)
	if errors.Is(err, os.ErrNotExist) {
		return at, false // the question was withdrawn
	}
	ns, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	at, err = time.Unix(0, ns), errors.Join(err, bad)
	if left := time.Until(at); err != nil || left < 0 || left > askAhead {
		folder.Remove(asked) // its writer was killed before it could withdraw the question, or another program has written it
		return at, false
	}
	return at, folder.Rename(asked, agreed) == nil // an error means that it was withdrawn
}

// readQuestion reads the file asked. Others may write into the folder, so the file may be a pipe: readQuestion does not
// wait for a writer.
func readQuestion(folder *os.Root) ([]byte, error) {
	f, err := folder.OpenFile(asked, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errNoFile, err)
	}
	return io.ReadAll(io.LimitReader(f, 32))
}

var errNoFile = errors.New("that is no file")
