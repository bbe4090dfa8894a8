package vmstructs

import (
	"errors"
	"strings"
	"testing"

	"goprof/process"
)

func TestOpenTellsWhatItIsNot(t *testing.T) {
	for _, c := range []struct {
		name   string
		images []string
		want   error
		says   string
	}{
		{"some other program", []string{"libc.so.6"}, ErrNotHotSpot, "native image"},
		{"OpenJ9", []string{"libj9vm29.so"}, ErrNotHotSpot, "OpenJ9"},
		{"OpenJ9 has a libjvm.so too", []string{"libjvm.so", "libj9vm29.so"}, ErrNotHotSpot, "OpenJ9"},
		{"a libjvm.so without tables", []string{"libjvm.so"}, ErrNotHotSpot, "no tables"},
		{"the launcher before it loads the JVM", []string{"libjli.so"}, ErrStarting, "libjvm.so"},
	} {
		f := newFake()
		for _, name := range c.images {
			f.images[name] = process.Image{Name: name}
		}
		if _, err := Open(f); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestOpenTooEarly: libjvm.so is mapped, but its initialisers have not run.
func TestOpenTooEarly(t *testing.T) {
	f, _ := fakeTables()
	f.images[libjvm] = process.Image{Name: libjvm}
	f.put64(f.symbols["gHotSpotVMStructEntryArrayStride"], 0)
	if _, err := Open(f); !errors.Is(err, ErrStarting) {
		t.Errorf("%v, want ErrStarting", err)
	}
}

func TestOpenUnsupported(t *testing.T) {
	f, _ := fakeTables() // tables without an entry
	f.images[libjvm] = process.Image{Name: libjvm}
	var unsupported *Unsupported
	if _, err := Open(f); !errors.As(err, &unsupported) || len(unsupported.Missing) < 10 {
		t.Errorf("%v, want Unsupported", err)
	}
}
