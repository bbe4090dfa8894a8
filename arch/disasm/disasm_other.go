//go:build !amd64 && !arm64

package disasm

// Available says that this binary has a decoder.
const Available = false

// Text knows no instruction of this CPU.
func Text([]byte, uint64, int) (text string, to uint64, ok bool) { return "", 0, false }

// PollsForSafepoint knows no instruction of this CPU.
func PollsForSafepoint([]byte, int, bool) bool { return false }
