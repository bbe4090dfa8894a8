package procfs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzAny reads arbitrary bytes as each of the kernel's formats.
func FuzzAny(f *testing.F) {
	f.Add([]byte("7 (java) R 1 7 7"))
	f.Add([]byte("7 (x) Z"))
	f.Add([]byte("1 (a) R) R 1 1 1 1 1 1 1 1 1 1 18446744073709551615 1 1 1 1 1 1 1 1 1 1"))
	f.Add([]byte("202 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffe10 0x7f00ab\n"))
	f.Add([]byte("664334 58987 2\n"))
	f.Add([]byte("java (7, #threads: 1)\n----\nse.exec_start  :  12345.678901\n"))
	f.Add([]byte("Name:\tx\nUid:\t1\nCapEff:\tzz\nState:\t\nNSpid:\t1 2 3\n"))
	f.Add([]byte("0::/system.slice\n1:cpu:/a:b\n"))
	f.Add([]byte("12.5 9.0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := ParseStat(b)
		if s.State != State(b) || ok && s.State == 0 || s.Threads < 0 || Ticks(s.Ticks) < 0 || Ticks(s.Start) < 0 {
			t.Fatalf("%+v %t", s, ok)
		}
		if name := Comm(b); !utf8.ValidString(name) || len(name) > 3*len(b) {
			t.Fatalf("%q", name)
		}
		if st := ParseStatus(b); !utf8.ValidString(st.Name) || strings.Contains(st.Name, "\n") {
			t.Fatalf("%q", st.Name)
		}
		StatusState(b)
		StatusTracer(b)
		StatusParent(b)
		StatusSwitches(b)
		ParseSyscall(b)
		ParseSchedstat(b)
		ExecStart(b)
		InKernel(b)
		if up, _ := Uptime(b); up < 0 {
			t.Fatal(up)
		}
		for _, path := range CgroupPaths(b) {
			if !bytes.Contains(b, []byte(path)) || strings.Contains(path, "\n") {
				t.Fatalf("%q", path)
			}
		}
		n := 0
		EachTask(b, func(int) { n++ })
		if n > len(b)/19 {
			t.Fatalf("%d entries in %d bytes", n, len(b))
		}
		v, rest, ok := CutUint(b)
		if digits := strings.TrimLeft(string(b[:len(b)-len(rest)]), "0"); ok &&
			digits != strings.TrimLeft(fmt.Sprint(v), "0") {
			t.Fatalf("%d of %q", v, b)
		}
	})
}

// stateOf converts any byte to a state that the kernel could write.
func stateOf(b byte) byte {
	if b <= ' ' || b >= 0x7f || b == ')' {
		return 'S'
	}
	return b
}

// FuzzStat writes a line as the kernel does, with any name. It cuts the line at any place, and reads it.
func FuzzStat(f *testing.F) {
	f.Add([]byte("java"), byte('S'), uint64(31415), uint64(7), uint16(3), 30)
	f.Add([]byte("a) R 1 (b"), byte('R'), uint64(1), uint64(1<<40), uint16(0), 9)
	f.Add([]byte("\xff\n) "), byte('Z'), ^uint64(0), uint64(0), uint16(7), 0)
	f.Add([]byte("a) Z 1 (\n"), byte('t'), ^uint64(0)>>1, uint64(0), uint16(1<<15), 40)
	f.Fuzz(func(t *testing.T, comm []byte, state byte, a, b uint64, cpu uint16, cut int) {
		state = stateOf(state)
		head := fmt.Appendf(nil, "7 (%s) %c", comm, state)
		line := fmt.Appendf(head, " 1 7 7 0 -1 4194560 1 2 3 4 %d %d 0 0 20 0 %d 0 %d %d 2 3 4 5 6 7 8 9 10 11 12 13 14 15 "+
			"16 %d 0 0\n",
			a>>1, b>>1, a, a, b, cpu)
		want := Stat{State: state, Parent: 1, CPU: int(cpu), Ticks: a>>1 + b>>1, Kernel: b >> 1,
			Threads: int(min(a, 1<<30)), Start: a, Memory: b}
		if s, ok := ParseStat(line); !ok || s != want {
			t.Fatalf("%q: %+v, %t, want %+v", line, s, ok, want)
		}
		if name := Comm(line); name != strings.ToValidUTF8(string(comm), "\uFFFD") {
			t.Fatalf("%q: %q", line, name)
		}
		// If a line is cut after the state, no part of the name is mistaken for the state.
		line = line[:len(head)+min(max(cut, 0), len(line)-len(head))]
		if s, _ := ParseStat(line); s.State != state ||
			s.CPU != -1 && !strings.HasPrefix(fmt.Sprint(cpu), fmt.Sprint(s.CPU)) {
			t.Fatalf("%q: %+v", line, s)
		}
	})
}

// FuzzStatus reads hostile text, and must find a line that is appended to that text.
func FuzzStatus(f *testing.F) {
	f.Add([]byte("Name:\tjava\nState:\tS "+
		"(sleeping)\nTgid:\t7\nNgid:\t0\nPid:\t7\nPPid:\t1\nTracerPid:\t0\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t7\t3\n"),
		byte('R'), uint64(7))
	f.Add([]byte("Name:\tTgid:\\n\nNSpid:\nUid:\tx\n"), byte('t'), ^uint64(0))
	f.Add([]byte("Name:\ta\\nTracerPid:\t7\n"), byte('Z'), uint64(1<<19))
	f.Fuzz(func(t *testing.T, text []byte, state byte, capabilities uint64) {
		ParseStatus(text)
		state = stateOf(state)
		for _, key := range []string{"VmSize", "Kthread", "_switches"} {
			if bytes.Contains(text, []byte(key)) {
				return
			}
		}
		text = append(bytes.TrimSuffix(text, []byte("\n")), '\n')
		tail := fmt.Sprintf("Name:\tx y\nState:\t%c "+
			"(y)\nTgid:\t11\nPid:\t13\nPPid:\t14\nTracerPid:\t12\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n"+
			"NSpid:\t17\t18\nCapPrm:\t1\nCapEff:\t%016x\nCapBnd:\tffffffffffffffff\nSeccomp:\t2\n"+
			"voluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n", state, capabilities)
		got := ParseStatus(append(text, tail...))
		if !slices.Equal(got.NSPID, []int{17, 18}) || !got.Nested() || got.InnerPID(1) != 18 {
			t.Fatalf("%+v", got)
		}
		if got.Name != "x y" || got.State != state || got.PID != 13 || got.TGID != 11 || got.Parent != 14 ||
			got.Tracer != 12 ||
			got.UID != 1 || got.EUID != 2 || got.SUID != 3 || got.GID != 5 || got.EGID != 6 || got.SGID != 7 ||
			got.Permitted != 1 || got.Effective != capabilities || got.Bounding != ^uint64(0) || got.Seccomp != 2 ||
			got.KernelThread {
			t.Fatalf("%+v", got)
		}
		// The kernel writes each line once, so the first line of a kind counts.
		alone := "Umask:\t0022\n" + tail
		if StatusState([]byte(alone)) != state || StatusTracer([]byte(alone)) != 12 || StatusSwitches([]byte(alone)) != 7 {
			t.Fatalf("%q", alone)
		}
		if parent, ok := StatusParent([]byte(alone)); !ok || parent != 14 {
			t.Fatalf("%q", alone)
		}
	})
}

// FuzzKernel writes the files as the kernel does, and reads them.
func FuzzKernel(f *testing.F) {
	f.Add([]byte("java"), uint64(7), uint64(9), uint16(3), int64(202), uint64(0x7ffe10))
	f.Add([]byte("a\n----\nse.exec_start : 1"), ^uint64(0)>>1, uint64(0), uint16(0), int64(-1), ^uint64(0))
	f.Fuzz(func(t *testing.T, name []byte, a, b uint64, n uint16, call int64, at uint64) {
		line := fmt.Appendf(nil, "%d %d %d\n", a, b, n)
		if s, ok := ParseSchedstat(line); !ok || s != (Schedstat{a, b, uint64(n)}) {
			t.Fatalf("%q: %+v", line, s)
		}
		call = max(call, -1)
		args := ""
		if call >= 0 {
			args = " 0x1 0x0 0xffffffffffffffff 0x3 0x4 0x5"
		}
		line = fmt.Appendf(nil, "%d%s %#x %#x\n", call, args, at, a)
		noArgs := call < 0
		if c, args, sp, pc, ok := ParseSyscall(line); !ok || c != call || sp != at || pc != a ||
			noArgs != (args == [6]uint64{}) {
			t.Fatalf("%q: %d %#x %#x %#x %v", line, c, args, sp, pc, ok)
		}
		if ms, part := a%(1<<40), uint64(n)*15; !bytes.Contains(name, []byte("\n----")) {
			text := fmt.Appendf(nil, "%s (7, #threads: 1)\n------\nse.exec_start      :   %d.%06d\nse.vruntime  : 1.000001\n",
				name, ms, part)
			if ns, ok := ExecStart(text); !ok || ns != ms*1e6+part {
				t.Fatalf("%q: %d", text, ns)
			}
		}
		centis := a % 1e11
		line = fmt.Appendf(nil, "%d.%02d 5.00\n", centis/100, centis%100)
		if up, ok := Uptime(line); ok != (centis < 1e11) || (up-Ticks(centis)).Abs() > time.Microsecond {
			t.Fatalf("%q: %v", line, up)
		}
		if path := "/" + string(name); !strings.Contains(path, "\n") {
			if got := CgroupPaths([]byte("1:cpu,x:" + path + "\n0::/\n")); !slices.Equal(got, []string{path, "/"}) {
				t.Fatalf("%q: %q", path, got)
			}
		}
	})
}

// FuzzEachTask reads a directory of two threads, which also has the entries that every directory has, and one more.
func FuzzEachTask(f *testing.F) {
	f.Add([]byte("java"), uint16(7))
	f.Add([]byte("12x"), uint16(0))
	f.Fuzz(func(t *testing.T, name []byte, tid uint16) {
		var dir []byte
		for _, name := range []string{".", "..", fmt.Sprint(tid), string(name[:min(len(name), 200)]), "12"} {
			size := (19 + len(name) + 1 + 7) &^ 7
			entry := make([]byte, size)
			binary.LittleEndian.PutUint16(entry[16:], uint16(size))
			copy(entry[19:], name)
			dir = append(dir, entry...)
		}
		var tids []int
		EachTask(dir, func(tid int) { tids = append(tids, tid) })
		if len(tids) < 2 || tids[0] != int(tid) || tids[len(tids)-1] != 12 || len(tids) > 3 {
			t.Fatalf("%v", tids)
		}
	})
}
