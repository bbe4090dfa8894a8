//go:build linux

package process

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestLinkageNames(t *testing.T) {
	for _, c := range []struct {
		name, symbol string
		want         bool
	}{
		{"malloc", "malloc", true},
		{"read", "read@@GLIBC_2.2.5", true},
		{"read", "readlink", false},
		{"ObjectMonitor::enter", "_ZN13ObjectMonitor5enterEP10JavaThread", true},
		{"ObjectMonitor::enter", "_ZN13ObjectMonitor5enterEP10JavaThread.cold", false},
		{"ObjectMonitor::enter", "_ZN13ObjectMonitor5enterE6Handle.isra.0", false},
		{"Klass::external_name", "_ZNK5Klass13external_nameEv", true},
		{"trace", "_Z5tracei", true},
		{"a<b>::c", "a<b>::c", true},
		{"~x", "_Z2~x", false},
	} {
		got := false
		for _, n := range linkageNames(c.name) {
			got = got || len(c.symbol) >= len(n.text) && c.symbol[:len(n.text)] == n.text && n.covers(c.symbol)
		}
		if got != c.want {
			t.Errorf("%s is %s: %v", c.name, c.symbol, got)
		}
	}
}

func TestIsCalled(t *testing.T) {
	for _, c := range []struct {
		file, name string
		want       bool
	}{
		{"libc.so.6", "libc", true}, {"libc-2.31.so", "libc", true}, {"libcrypt.so.1", "libc", false},
		{"libjvm.so", "libjvm.so", true}, {"libc.so.6", "libc.so", true}, {"libc.so.6", "lib", false},
	} {
		if got := isCalled(c.file, c.name); got != c.want {
			t.Errorf("%s is %s: %v", c.file, c.name, got)
		}
	}
}

// TestFunctions looks for functions in its own process. If there is none, it expects the right error.
func TestFunctions(t *testing.T) {
	p, err := Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(exe)
	if _, err := p.Functions("no such image", "main.main"); !errors.Is(err, ErrNoImage) {
		t.Errorf("no image: %v", err)
	}
	if _, err := p.Functions(name, "no such symbol"); !errors.Is(err, ErrNoSymbol) {
		t.Errorf("no symbol: %v", err)
	}
}
