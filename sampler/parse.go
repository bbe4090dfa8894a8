//go:build linux

package sampler

// Readers for the text of /proc, without allocation. What does not parse is not ok.

func leadingUint(b []byte) (v uint64, ok bool) {
	for i, c := range b {
		if c < '0' || c > '9' || i == 20 {
			return v, i > 0
		}
		v = v*10 + uint64(c-'0')
	}
	return v, len(b) > 0
}

// nextField cuts the first blank-separated word off b.
func nextField(b []byte) (word, rest []byte) {
	i := 0
	for i < len(b) && b[i] != ' ' && b[i] != '\n' {
		i++
	}
	if i == len(b) {
		return b, nil
	}
	return b[:i], b[i+1:]
}

// field returns what follows key in b, up to its end.
func field(b []byte, key string) []byte {
	for i := 0; i+len(key) <= len(b); i++ {
		if string(b[i:i+len(key)]) == key {
			return b[i+len(key):]
		}
	}
	return nil
}

// parseSchedstat reads /proc/PID/task/TID/schedstat: nanoseconds on CPU, nanoseconds
// waiting for one, and how often it got one (Documentation/scheduler/sched-stats.rst).
func parseSchedstat(b []byte) (s schedstat, ok bool) {
	for _, v := range []*uint64{&s.ran, &s.waited, &s.turns} {
		var word []byte
		word, b = nextField(b)
		if *v, ok = leadingUint(word); !ok {
			return schedstat{}, false
		}
	}
	return s, true
}

type schedstat struct {
	ran, waited, turns uint64
}

// parseStat reads a thread's state letter, the CPU that it last ran on and its CPU time in
// clock ticks from /proc/PID/task/TID/stat (proc(5): fields 3, 39, and 14 + 15). The name in
// field 2 may hold anything, so count from its last bracket.
func parseStat(b []byte) (state byte, cpu int, ticks uint64) {
	end := -1
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] == ')' {
			end = i
			break
		}
	}
	if end < 0 || end+2 >= len(b) {
		return 0, -1, 0
	}
	b = b[end+2:]
	state, cpu = b[0], -1
	for n := 3; n <= 39; n++ {
		var word []byte
		word, b = nextField(b)
		switch n {
		case 14, 15:
			v, _ := leadingUint(word)
			ticks += v
		case 39:
			if v, ok := leadingUint(word); ok {
				cpu = int(v)
			}
		}
	}
	return state, cpu, ticks
}

// parseSyscall reads /proc/PID/task/TID/syscall (fs/proc/base.c, proc_pid_syscall):
// "running", or the system call's number (-1: none) with six arguments (unless -1), then sp
// and pc.
func parseSyscall(b []byte) (call int64, args [6]uint64, sp, pc uint64, ok bool) {
	word, rest := nextField(b)
	n := len(args)
	if string(word) == "-1" {
		call, n = -1, 0
	} else {
		v, isNumber := leadingUint(word)
		if !isNumber {
			return 0, args, 0, 0, false
		}
		call = int64(v)
	}
	for i := range n {
		word, rest = nextField(rest)
		if args[i], ok = hex(word); !ok {
			return 0, args, 0, 0, false
		}
	}
	word, rest = nextField(rest)
	if sp, ok = hex(word); !ok {
		return 0, args, 0, 0, false
	}
	word, _ = nextField(rest)
	pc, ok = hex(word)
	return call, args, sp, pc, ok
}

// hex reads 0x1f.
func hex(b []byte) (v uint64, ok bool) {
	if len(b) < 3 || len(b) > 18 || b[0] != '0' || b[1] != 'x' {
		return 0, false
	}
	for _, c := range b[2:] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
