//go:build linux

package ptrace

import (
	"testing"

	"goprof/process"
)

func TestKindOfLink(t *testing.T) {
	for link, want := range map[string]process.FileKind{
		"socket:[4711]": process.Socket, "pipe:[1]": process.Pipe, "anon_inode:[eventpoll]": process.Selector, "/tmp/a file": process.RegularFile,
		"anon_inode:[eventfd]": process.OtherFile, "/dev/pts/0": process.RegularFile, "": process.OtherFile, "sock": process.OtherFile,
	} {
		if got := kindOfLink([]byte(link)); got != want {
			t.Errorf("%q is %d, want %d", link, got, want)
		}
	}
}
