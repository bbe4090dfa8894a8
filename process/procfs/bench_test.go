package procfs

import "testing"

// hot are the files that the sampler reads thousands of times a second.
var hot = []struct {
	name, text string
	parse      func(b []byte) (ok bool)
}{
	{"stat", longStat,
		func(b []byte) bool { s, ok := ParseStat(b); return ok && s.CPU == 3 }},
	{"state", longStat,
		func(b []byte) bool { return State(b) == 'S' }},
	{"schedstat", "664334123456 58987123 200345\n",
		func(b []byte) bool { s, ok := ParseSchedstat(b); return ok && s.Turns == 200345 }},
	{"syscall", "202 0x7f12345678 0x189 0x0 0x7ffe12345678 0x0 0xffffffff 0x7ffe12345600 0x7f00abcdef12\n",
		func(b []byte) bool { _, _, _, pc, ok := ParseSyscall(b); return ok && pc == 0x7f00abcdef12 }},
	{"sched", "java (4711, #threads: 42)\n-------------------------------------------------------------------\n" +
		"se.exec_start                                :       3456789.123456\n" +
		"se.vruntime                                  :            42.424242\n",
		func(b []byte) bool { ns, ok := ExecStart(b); return ok && ns == 3456789123456 }},
	{"wchan", "futex_wait_queue", func(b []byte) bool { waits, told := InKernel(b); return waits && told }},
	{"tracer", longStatus, func(b []byte) bool { return StatusTracer(b) == 12 }},
	{"switches", longStatus, func(b []byte) bool { return StatusSwitches(b) == 7 }},
}

// longStat is as long as a stat of current kernels.
const longStat = "4711 (C2 CompilerThre) S 4700 4700 4700 34817 4700 4194368 12345 678 9 10 31415 9265 0 0 20 0 42 0 " +
	"123456789 8589934592 65536 18446744073709551615 1 1 0 0 0 0 0 4096 1260 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

// longStatus is as long as a status of current kernels.
const longStatus = "Name:\tC2 CompilerThre\nUmask:\t0022\nState:\tS " +
	"(sleeping)\nTgid:\t4700\nNgid:\t0\nPid:\t4711\nPPid:\t1\nTracerPid:\t12\n" +
	"Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nFDSize:\t512\nGroups:\t4 24 27 30 46 1000 " +
	"\nNStgid:\t4700\nNSpid:\t4711\n" +
	"NSpgid:\t4700\nNSsid:\t4700\nKthread:\t0\nVmPeak:\t 8388608 kB\nVmSize:\t 8388608 kB\nVmLck:\t       0 " +
	"kB\nVmPin:\t       0 kB\n" +
	"VmHWM:\t  524288 kB\nVmRSS:\t  524288 kB\nRssAnon:\t  500000 kB\nRssFile:\t   24288 kB\nRssShmem:\t       0 " +
	"kB\nVmData:\t 1000000 kB\n" +
	"VmStk:\t     132 kB\nVmExe:\t       4 kB\nVmLib:\t   20000 kB\nVmPTE:\t    2000 kB\nVmSwap:\t       0 " +
	"kB\nHugetlbPages:\t       0 kB\n" +
	"CoreDumping:\t0\nTHP_enabled:\t1\nuntag_mask:\t0xffffffffffffffff\nThreads:\t42\nSigQ:\t0/63000\nSigPnd:\t0000000000000000\n" +
	"ShdPnd:\t0000000000000000\nSigBlk:\t0000000000000004\nSigIgn:\t0000000000000000\nSigCgt:\t2000000181005ccf\nCapInh:\t0000000000000000\n" +
	"CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n" +
	"Seccomp_filters:\t0\nSpeculation_Store_Bypass:\tthread vulnerable\nSpeculationIndirectBranch:\tconditional " +
	"enabled\nCpus_allowed:\tff\n" +
	"Cpus_allowed_list:\t0-7\nMems_allowed:\t00000000,00000001\nMems_allowed_list:\t0\nvoluntary_ctxt_switches:\t3\n" +
	"nonvoluntary_ctxt_switches:\t4\n"

// TestNoAllocation: reading these files allocates nothing, because the sampler reads them while it measures.
func TestNoAllocation(t *testing.T) {
	for _, c := range hot {
		text := []byte(c.text)
		if n := testing.AllocsPerRun(100, func() {
			if !c.parse(text) {
				t.Fatalf("%s is not read", c.name)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
	n := testing.AllocsPerRun(100, func() { ParseStatus([]byte(longStatus)) })
	if t.Logf("a whole status: %v allocations", n); n > 5 {
		t.Errorf("%v allocations for a status", n)
	}
}

func BenchmarkParse(b *testing.B) {
	for _, c := range hot {
		b.Run(c.name, func(b *testing.B) {
			text := []byte(c.text)
			b.ReportAllocs()
			for b.Loop() {
				c.parse(text)
			}
		})
	}
	b.Run("status", func(b *testing.B) {
		text := []byte(longStatus)
		b.ReportAllocs()
		for b.Loop() {
			ParseStatus(text)
		}
	})
}
