//go:build linux && amd64

package session

// op is what an instruction may do to the list of frames.
type op uint8

const (
	opOther op = iota
	opCall
	opReturn
	opJump    // or a conditional one
	opSyscall // rt_sigreturn among them
	opPushFlags
	opPopFlags
)

var opNames = [...]string{"other", "call", "return", "jump", "syscall", "pushf", "popf"}

func (o op) String() string { return opNames[o] }

// opOf tells an instruction by its opcode (Intel SDM volume 2, appendix A). It is written
// apart from package arch's decoder, which is among what it checks.
func opOf(code []byte) op {
	i := skipPrefixes(code)
	if i+1 >= len(code) {
		return opOther
	}
	switch b := code[i]; {
	case b == 0xe8:
		return opCall
	case b == 0xc3, b == 0xc2:
		return opReturn
	case b == 0xe9, b == 0xeb, b >= 0x70 && b <= 0x7f, b >= 0xe0 && b <= 0xe3:
		return opJump
	case b == 0x0f && code[i+1] >= 0x80 && code[i+1] <= 0x8f:
		return opJump
	case b == 0x0f && code[i+1] == 0x05:
		return opSyscall
	case b == 0x9c:
		return opPushFlags
	case b == 0x9d:
		return opPopFlags
	case b == 0xff && code[i+1]>>3&7 == 2:
		return opCall
	case b == 0xff && code[i+1]>>3&7 == 4:
		return opJump
	}
	return opOther
}

// skipPrefixes goes past prefixes: 66, F2 (BND), F3 (REP), 3E (NOTRACK), 2E, 64 and REX.
func skipPrefixes(code []byte) int {
	i := 0
	for i < len(code) {
		switch code[i] {
		case 0x66, 0xf2, 0xf3, 0x3e, 0x2e, 0x64:
			i++
			continue
		}
		break
	}
	if i < len(code) && code[i]&0xf0 == 0x40 {
		i++
	}
	return i
}
