package ship

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"goprof/output/folderlock"
)

// openSpool opens one destination's part of a spool, and finds the messages of an earlier goprof.
func openSpool(o *Options, destination string) (s *spool, unlock func(), err error) {
	s = &spool{max: o.MaxBytes, next: 1}
	if o.Spool == "" {
		return s, func() {}, nil
	}
	path := filepath.Join(o.Spool, folderOf(destination))
	if s.folder, err = openFolder(o.Spool, folderOf(destination)); err != nil {
		return nil, nil, fmt.Errorf("spool: %w", err)
	}
	var free func()
	if err = checkOwner(s.folder, path); err == nil {
		if free, err = folderlock.Lock(s.folder, "lock", path); err != nil {
			err = fmt.Errorf("spool: %w", err)
		}
	}
	if err == nil {
		err = s.recover()
	}
	if err != nil {
		s.folder.Close()
		return nil, nil, err
	}
	return s, func() { free(); s.folder.Close() }, nil
}

// openFolder opens a folder of the spool, and makes it if it does not exist. It follows no link out of the spool: a
// user who may write above the spool could have made one.
func openFolder(spool, name string) (*os.Root, error) {
	if err := os.MkdirAll(spool, 0o700); err != nil {
		return nil, err
	}
	above, err := os.OpenRoot(spool)
	if err != nil {
		return nil, err
	}
	defer above.Close()
	if err := above.Mkdir(name, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return above.OpenRoot(name)
}

// folderOf returns a destination's folder: the beginning of its name for people, and a unique number.
func folderOf(destination string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(destination))
	sum := sha256.Sum256([]byte(destination))
	return fmt.Sprintf("%.40s-%x", strings.Trim(plain, ".-"), sum[:6])
}

// maxListed bounds the names of a folder that are read.
const maxListed = 4 * maxEntries

// recover lists the messages in the folder. Messages beyond the bound are dropped by the first put.
func (s *spool) recover() error {
	dir, err := s.folder.Open(".")
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	defer dir.Close()
	listed := 0
	for listed < maxListed {
		names, err := dir.Readdirnames(1024)
		listed += len(names)
		for _, name := range names {
			s.find(name)
		}
		if errors.Is(err, io.EOF) || len(names) == 0 {
			break
		}
	}
	slices.SortFunc(s.entries, func(a, b *spooled) int { return cmp.Compare(a.number, b.number) })
	return nil
}

// find adds the message in a file. Damage is found, and counted, only when the message is about to be sent.
func (s *spool) find(name string) {
	if strings.HasSuffix(name, unfinished) {
		s.folder.Remove(name) // an earlier goprof ended while it wrote this file
		return
	}
	number, ok := numberOf(name)
	if !ok {
		return
	}
	s.next = max(s.next, number+1) // messages without room count, too: a new one must not get their numbers
	if len(s.entries) >= maxEntries {
		return
	}
	e, err := found(s.folder, number)
	if err != nil {
		e = &spooled{number: number}
	}
	s.entries = append(s.entries, e)
	s.bytes += e.size
}
