//go:build !amd64 && !arm64

package disasm

// Available says that this binary has a decoder.
const Available = false

// Text knows no instruction.
func Text([]byte, uint64, int) (string, bool) { return "", false }

// PollsForSafepoint knows none.
func PollsForSafepoint([]byte, int, bool) bool { return false }
