//go:build linux

package events

import (
	"testing"
	"unsafe"
)

// TestFileLayout: programs write a File and a thread's call by offsets.
func TestFileLayout(t *testing.T) {
	var f File
	var c ioCall
	for _, k := range []struct {
		name      string
		got, want uintptr
	}{
		{"File", unsafe.Sizeof(f), fileSize}, {"Sort", unsafe.Offsetof(f.Sort), fileSort},
		{"since", unsafe.Offsetof(f.since), fileSince}, {"connecting", unsafe.Offsetof(f.connecting), fileConnecting},
		{"Folder", unsafe.Offsetof(f.Folder), fileFolder}, {"FD", unsafe.Offsetof(f.FD), fileFD},
		{"fresh", unsafe.Offsetof(f.fresh), fileFresh}, {"Sums", unsafe.Offsetof(f.Sums), fileSums},
		{"name", unsafe.Offsetof(f.name), uintptr(fileName)},
		{"Bytes", unsafe.Offsetof(f.Sums[0].Bytes), sumBytes}, {"Nanos", unsafe.Offsetof(f.Sums[0].Nanos), sumNanos},
		{"Failed", unsafe.Offsetof(f.Sums[0].Failed), sumFailed}, {"IOSum", unsafe.Sizeof(f.Sums[0]), sumSize},
		{"ioCall", unsafe.Sizeof(c), callSize}, {"kind", unsafe.Offsetof(c.kind), callKind},
		{"fd", unsafe.Offsetof(c.fd), callFD}, {"id", unsafe.Offsetof(c.id), callID},
		{"tried", unsafe.Offsetof(c.tried), callTried}, {"polls", unsafe.Offsetof(c.polls), callPolls},
		{"again", unsafe.Offsetof(c.again), callAgain},
		{"pairCounts", unsafe.Sizeof(eventCounts{}), countIOFull},
	} {
		if k.got != k.want {
			t.Errorf("%s is %d, want %d", k.name, k.got, k.want)
		}
	}
}
