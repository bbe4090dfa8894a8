//go:build linux

package ptrace

import (
	"testing"

	"goprof/sampler/look"
)

func TestKindOfLink(t *testing.T) {
	for link, want := range map[string]look.FileKind{
		"socket:[4711]": look.Socket, "pipe:[1]": look.Pipe, "anon_inode:[eventpoll]": look.Selector,
		"/tmp/a file":          look.RegularFile,
		"anon_inode:[eventfd]": look.OtherFile, "/dev/pts/0": look.RegularFile, "": look.OtherFile, "sock": look.OtherFile,
	} {
		if got := kindOfLink([]byte(link)); got != want {
			t.Errorf("%q is %d, want %d", link, got, want)
		}
	}
}
