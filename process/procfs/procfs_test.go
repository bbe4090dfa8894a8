package procfs

import (
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	const fields = " 1 7 7 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 33 0 12345 4096 10 18446744073709551615"
	const toCPU = " 1 1 0 0 0 0 0 4096 1260 0 0 0 17 3 0 0 0 0 0\n"
	whole := Stat{'R', 1, 3, 300, 50, 33, 12345, 4096}
	noCPU := whole
	noCPU.CPU = -1
	for _, c := range []struct {
		name, in, comm string
		want           Stat
		ok             bool
	}{
		{"plain", "7 (java) R" + fields + toCPU, "java", whole, true},
		{"no CPU", "7 (java) R" + fields, "java", noCPU, true},
		{"brackets in the name", "7 (a) b) R" + fields + toCPU, "a) b", whole, true},
		{"more of them", "7 (a) b) (c) R" + fields + toCPU, "a) b) (c", whole, true},
		{"a name like a line", "7 (a) D 1 2 3 4 5) R" + fields + toCPU, "a) D 1 2 3 4 5", whole, true},
		{"newlines and no UTF-8", "7 (\xff\n) R" + fields + toCPU, "\uFFFD\n", whole, true},
		{"no name", "7 () R" + fields + toCPU, "", whole, true},
		{"cut off", "7 (java) S 1 7", "java", Stat{State: 'S', Parent: 1, CPU: -1}, false},
		{"cut off in its memory", "7 (java) R" + fields[:strings.Index(fields, " 4096")], "java",
			Stat{'R', 1, -1, 300, 50, 33, 12345, 0}, false},
		{"cut off behind the state", "7 () Z", "", Stat{State: 'Z', CPU: -1}, false},
		{"a word for a number", "7 (java) R" + strings.Replace(fields, "250", "x", 1), "java",
			Stat{'R', 1, -1, 50, 50, 33, 12345, 4096}, false},
		{"a number too large", "7 (java) R" + strings.Replace(fields, "12345", "18446744073709551616", 1), "java",
			Stat{'R', 1, -1, 300, 50, 33, 0, 4096}, false},
		{"two letters", "7 (java) RR" + fields, "java", Stat{CPU: -1}, false},
		{"no more than a name", "7 (java)", "java", Stat{CPU: -1}, false},
		{"no end of a name", "7 (java", "", Stat{CPU: -1}, false},
		{"brackets the wrong way", "7 )java(", "", Stat{CPU: -1}, false},
		{"a number", "7", "", Stat{CPU: -1}, false},
		{"empty", "", "", Stat{CPU: -1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := ParseStat([]byte(c.in))
			if got != c.want || ok != c.ok {
				t.Errorf("%+v, %t", got, ok)
			}
			if comm := Comm([]byte(c.in)); comm != c.comm {
				t.Errorf("%q", comm)
			}
			if state := State([]byte(c.in)); state != c.want.State {
				t.Errorf("%c", state)
			}
		})
	}
}

func TestParseStatus(t *testing.T) {
	for _, bad := range []string{"", "\n", ":", "Name", "Name:", "Uid:\tx", "NSpid:\t", "State:\t",
		strings.Repeat("Uid:\n", 1000),
		"CapEff:\tffffffffffffffffffffffffff"} {
		if s := ParseStatus([]byte(bad)); s.UID != 0 || s.Can(19) || s.Nested() || s.InnerPID(7) != 7 {
			t.Errorf("%q: %+v", bad, s)
		}
	}
	s := ParseStatus([]byte("Name:\ta: b\nState:\tR (running)\nTgid:\t7\nPid:\t8\nUid:\t1\t2\t3\t4\nNSpid:\t8\t1\n" +
		"CapEff:\t0000000000080000\nTracerPid:\t9\nVmSize:\t 1 kB\n"))
	if s.Name != "a: b" || s.State != 'R' || s.TGID != 7 || s.PID != 8 || s.UID != 1 || s.EUID != 2 || s.SUID != 3 ||
		len(s.NSPID) != 2 || s.InnerPID(0) != 1 || !s.Can(19) || s.Can(21) || s.Tracer != 9 || s.KernelThread {
		t.Errorf("%+v", s)
	}
	for text, want := range map[string]bool{
		"Name:\tkthreadd\nState:\tS (sleeping)\nPid:\t2\nPPid:\t0\n":     true,
		"Name:\tkworker\nState:\tI (idle)\nPid:\t9\nPPid:\t2\n":          true,
		"Name:\tgone\nState:\tZ (zombie)\nPid:\t9\nPPid:\t2\n":           false,
		"Name:\tx\nState:\tS\nPid:\t9\nPPid:\t2\nVmSize:\t 1 kB\n":       false,
		"Name:\tx\nState:\tS\nPid:\t9\nPPid:\t1\nKthread:\t1\n":          true,
		"Name:\tx\nState:\tS\nPid:\t9\nPPid:\t1\nKthread:\t0\nVmSize:\t": false,
	} {
		if got := ParseStatus([]byte(text)).KernelThread; got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestParseSyscall(t *testing.T) {
	for _, c := range []struct {
		name, in string
		call     int64
		sp, pc   uint64
		ok       bool
	}{
		{"futex", "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffe10 0x7f00ab\n", 202, 0x7ffe10, 0x7f00ab, true},
		{"blocked outside a call", "-1 0x7ffe10 0x7f00ab\n", -1, 0x7ffe10, 0x7f00ab, true},
		{"running", "running\n", 0, 0, 0, false},
		{"cut off", "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffe10", 202, 0x7ffe10, 0, false},
		{"empty", "", 0, 0, 0, false},
		{"not hexadecimal", "-1 0xzz 0x1\n", -1, 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, _, sp, pc, ok := ParseSyscall([]byte(c.in))
			if ok != c.ok || (ok && (call != c.call || sp != c.sp || pc != c.pc)) {
				t.Errorf("%d %#x %#x %v", call, sp, pc, ok)
			}
		})
	}
}

// TestStaysAsleep: a thread that begins to wait for the lock, or gets it, during a look does not stay asleep.
func TestStaysAsleep(t *testing.T) {
	const lock, page, none = "process_vm_rw_core.constprop.0", "handle_userfault", "0"
	for _, c := range []struct {
		before, after string
		want          bool
	}{{page, page, true}, {none, none, true}, {"", "", true}, {lock, lock, false}, {none, lock, false},
		{lock, none, false}, {lock, page, false}, {none, page, false}, {page, none, false}} {
		if StaysAsleep([]byte(c.before), []byte(c.after)) != c.want {
			t.Errorf("%q, then %q: %v", c.before, c.after, !c.want)
		}
	}
}

// TestAtSpaceLock: texts of wchan for a lock, a page, a file and a CPU.
func TestAtSpaceLock(t *testing.T) {
	for wchan, want := range map[string]bool{"process_vm_rw_core.constprop.0": true, "process_vm_rw_single_vec": true,
		"__access_remote_vm": true, "m_start": true, "handle_userfault": false, "folio_wait_bit_common": false,
		"request_wait_answer": false, "0": false, "": false} {
		if AtSpaceLock([]byte(wchan)) != want {
			t.Errorf("%q: %v", wchan, !want)
		}
	}
}
