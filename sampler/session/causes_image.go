//go:build linux

package session

import (
	"os"

	"golang.org/x/sys/unix"

	"goprof/target"
)

// hasNativeImageSection reports whether an executable is a GraalVM native image: its heap
// is the section .svm_heap, and its symbols begin with __svm (SubstrateVM,
// com.oracle.objectfile and SectionName.SVM_HEAP).
func hasNativeImageSection(path string) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return target.HasSection(f, st.Size, ".svm_heap")
}
