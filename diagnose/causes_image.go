//go:build linux

package diagnose

import "goprof/process"

// hasNativeImageSection reports whether an executable is a GraalVM native image: its heap
// is the section .svm_heap, and its symbols begin with __svm (SubstrateVM,
// com.oracle.objectfile and SectionName.SVM_HEAP). link is a /proc/PID/exe.
func hasNativeImageSection(link string) bool {
	f, size, err := process.OpenKernelLink(link)
	if err != nil {
		return false
	}
	defer f.Close()
	return process.HasSection(f, size, ".svm_heap")
}
