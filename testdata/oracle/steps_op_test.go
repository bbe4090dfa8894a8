//go:build linux

package oracle

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
	opExclusive // a load after which a store succeeds only if nothing came between
)

var opNames = [...]string{"other", "call", "return", "jump", "syscall", "pushf", "popf", "exclusive load"}

func (o op) String() string { return opNames[o] }
