package arm64

import "testing"

// TestIntrinsic: no code is taken for that of an intrinsic method, x86's neither.
func TestIntrinsic(t *testing.T) {
	x86 := []byte{0x8b, 0xc1, 0x2b, 0xca, 0x51, 0x0f, 0x4e, 0xd0, 0x59}
	CPU.Intrinsics(x86, func(name string, _, _ uint32) bool { t.Errorf("%q", name); return false })
}
