package procfs

// ParseSyscall reads /proc/PID/task/TID/syscall (fs/proc/base.c, proc_pid_syscall): the number of the system call (-1
// for none), six arguments (unless the number is -1), sp and pc. ok is false if the text is "running".
func ParseSyscall(b []byte) (call int64, args [6]uint64, sp, pc uint64, ok bool) {
	word, rest := cutWord(b)
	n := len(args)
	if string(word) == "-1" {
		call, n = -1, 0
	} else {
		v, isNumber := number(word)
		if !isNumber {
			return 0, args, 0, 0, false
		}
		call = int64(v)
	}
	for i := range n {
		word, rest = cutWord(rest)
		if args[i], ok = hex(word); !ok {
			return 0, args, 0, 0, false
		}
	}
	word, rest = cutWord(rest)
	if sp, ok = hex(word); !ok {
		return 0, args, 0, 0, false
	}
	word, _ = cutWord(rest)
	pc, ok = hex(word)
	return call, args, sp, pc, ok
}
