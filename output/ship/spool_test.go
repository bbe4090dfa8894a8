//go:build unix

package ship

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"goprof/output/folderlock"
)

// left returns a spool with five undelivered messages.
func left(t *testing.T) (o Options, folder string) {
	t.Helper()
	o = Options{Spool: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		s := start(t, o, &server{answer: func(int) error { return errors.New("down") }})
		for _, name := range batches(5) {
			s.Offer(batchOf(name))
		}
		closed(t, s, time.Minute)
	})
	return o, filepath.Join(o.Spool, folderOf("test"))
}

// TestDamagedSpool: whatever the damage to the second of five files, the other messages arrive. The damage is counted.
func TestDamagedSpool(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"cut off":      func(path string) error { return os.Truncate(path, headerSize+3) },
		"no header":    func(path string) error { return os.Truncate(path, 7) },
		"empty":        func(path string) error { return os.Truncate(path, 0) },
		"grown":        func(path string) error { return os.Truncate(path, 1<<20) },
		"huge":         func(path string) error { return os.Truncate(path, 1<<40) },
		"foreign text": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("hello ", 99)), 0o600) },
		"one bit": func(path string) error {
			data, err := os.ReadFile(path)
			if err == nil {
				data[len(data)-1] ^= 1
				err = os.WriteFile(path, data, 0o600)
			}
			return err
		},
		"a pipe": func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
		"a link": func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)) },
		"a folder": func(path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, folder := left(t)
			if err := harm(filepath.Join(folder, fileName(2))); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				to := &server{}
				s := start(t, o, to)
				if err := closed(t, s, time.Hour); err != nil {
					t.Error(err)
				}
				if !slices.Equal(to.got, []string{"batch 0", "batch 2", "batch 3", "batch 4"}) {
					t.Errorf("%q", to.got)
				}
				if st := s.Stats()[0]; st.Damaged.Batches != 1 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestForeignFilesStay: a file that is not goprof's message is neither sent nor deleted.
func TestForeignFilesStay(t *testing.T) {
	o, folder := left(t)
	for _, name := range []string{"notes.txt", "1.msg", "000000000000000G.msg"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	half := filepath.Join(folder, fileName(99)+unfinished)
	if err := os.WriteFile(half, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		to := &server{}
		closed(t, start(t, o, to), time.Hour)
		if len(to.got) != 5 {
			t.Errorf("%q", to.got)
		}
	})
	if _, err := os.Stat(filepath.Join(folder, "notes.txt")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(half); err == nil {
		t.Error("half a file stays for ever")
	}
}

// TestOneSpoolOneUser: a second goprof gets an error while the spool is in use. The first one continues.
func TestOneSpoolOneUser(t *testing.T) {
	o := Options{Spool: t.TempDir()}
	s := start(t, o, &server{})
	var inUse *folderlock.InUse
	if _, err := New(o, &server{name: "other"}, &server{}); !errors.As(err, &inUse) {
		t.Errorf("%v", err)
	}
	closed(t, s, time.Minute)
	if s, err := New(o, &server{}); err != nil {
		t.Error(err)
	} else {
		closed(t, s, time.Minute)
	}
}

// TestOthersMayNotWrite: a folder to which every user may write is not used as a spool.
func TestOthersMayNotWrite(t *testing.T) {
	o, folder := left(t)
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := New(o, &server{}); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("%v", err)
	}
}

// TestDiskTakesNothing: messages that the disk does not take are sent from memory, and counted. If the folder is gone,
// writing fails at once, as on a full disk.
func TestDiskTakesNothing(t *testing.T) {
	o := Options{Spool: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		to := &server{answer: func(try int) error {
			if try < 4 {
				return errors.New("down")
			}
			return nil
		}}
		s := start(t, o, to)
		if err := os.RemoveAll(filepath.Join(o.Spool, folderOf("test"))); err != nil {
			t.Fatal(err)
		}
		for _, name := range batches(5) {
			s.Offer(batchOf(name))
		}
		if err := closed(t, s, time.Hour); err != nil {
			t.Error(err)
		}
		if st := s.Stats()[0]; st.SpoolErrors != 5 || st.Sent.Batches != 5 || len(to.got) != 5 {
			t.Errorf("%+v %q", st, to.got)
		}
	})
}

// TestDiskIsFull: the same with a disk that is really full, if the test may mount one.
func TestDiskIsFull(t *testing.T) {
	full := spoolOn(t, 64<<10)
	synctest.Test(t, func(t *testing.T) {
		var isDown atomic.Bool
		isDown.Store(true)
		to := &server{answer: func(int) error {
			if isDown.Load() {
				return errors.New("down")
			}
			return nil
		}}
		s := start(t, Options{Spool: full}, to)
		pad := strings.Repeat("x", 10<<10)
		for _, name := range batches(9) {
			s.Offer(batchOf(name + pad))
			time.Sleep(time.Second)
		}
		if st := s.Stats()[0]; st.SpoolErrors == 0 || st.Queued.Batches != 9 {
			t.Errorf("%+v", st)
		}
		isDown.Store(false)
		if err := closed(t, s, time.Hour); err != nil || len(to.got) != 9 || !slices.IsSorted(to.got) {
			t.Errorf("%v, %d arrived", err, len(to.got))
		}
	})
}

// TestStrandedIsBounded: if neither the disk nor the server takes messages, memory is bounded.
func TestStrandedIsBounded(t *testing.T) {
	s := &spool{max: 1 << 40, next: 1}
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir.Close() // from now on it takes nothing
	s.folder = dir
	lost := 0
	for range 20 {
		dropped, err := s.put(make([]byte, 1<<20), 1, time.Now())
		if err == nil {
			t.Fatal("a closed folder takes a message")
		}
		lost += len(dropped)
	}
	if lost != 12 || s.stranded != maxStranded {
		t.Errorf("%d dropped, %d bytes in memory", lost, s.stranded)
	}
}

// FuzzSpoolFile: no bytes in a spool's file end goprof. They are sent only if they are a complete message.
func FuzzSpoolFile(f *testing.F) {
	dir, err := os.OpenRoot(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	e := &spooled{number: 1, looks: 3, at: time.Unix(1, 0)}
	if err := writeMessage(dir, e, []byte("message")); err != nil {
		f.Fatal(err)
	}
	whole, err := dir.ReadFile(fileName(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:headerSize])
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := dir.WriteFile(fileName(2), data, 0o600); err != nil {
			t.Fatal(err)
		}
		found(dir, 2)
		got, err := readMessage(dir, 2)
		if err == nil && len(got) != len(data)-headerSize {
			t.Errorf("%d bytes of %d", len(got), len(data))
		}
	})
}

// TestSpoolFolderIsNoLink: users who may write above the folder of a spool cannot replace it with a link.
func TestSpoolFolderIsNoLink(t *testing.T) {
	o := Options{Spool: t.TempDir()}
	elsewhere := t.TempDir()
	precious := filepath.Join(elsewhere, "precious"+unfinished)
	if err := errors.Join(os.WriteFile(precious, nil, 0o600),
		os.Symlink(elsewhere, filepath.Join(o.Spool, folderOf("test")))); err != nil {
		t.Fatal(err)
	}
	if s, err := New(o, &server{}); err == nil {
		t.Error("a link that leads out of the spool is followed")
		s.Close(t.Context())
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}
