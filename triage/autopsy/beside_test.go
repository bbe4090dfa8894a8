package autopsy

import (
	"slices"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/triage/hserr"
)

// TestBeside: a crash file may tell of the same death as the core or of another one. It may also tell what no core
// has.
func TestBeside(t *testing.T) {
	dump := died(segv(0), nil, native("inflateEnd", "libz.so.1"))
	file := func(change func(*hserr.Report)) *hserr.Report {
		r := &hserr.Report{PID: 7, Signal: "SIGSEGV", PC: 0x5000, Addr: 0x10, HasAddr: true, Whole: true}
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		file *hserr.Report
		want string
	}{
		"the same": {file(func(*hserr.Report) {}),
			"says the same: process 7, signal SIGSEGV, pc 0x5000, address 0x10"},
		"another pc":      {file(func(r *hserr.Report) { r.PC = 0x6000 }), "says otherwise: pc 0x6000, the core 0x5000"},
		"another process": {file(func(r *hserr.Report) { r.PID = 8 }), "says otherwise: process 8, the core 7"},
		"no address": {file(func(r *hserr.Report) { r.HasAddr = false }),
			"says the same: process 7, signal SIGSEGV, pc 0x5000"},
		"given up": {file(func(r *hserr.Report) { r.Signal, r.Internal = "", "Internal Error (g1.cpp:7)" }),
			"says: Internal Error (g1.cpp:7)"},
	} {
		found := Judge(dump, facts(), "core")
		before := len(found.Findings)
		Beside(found, dump, facts(), c.file, "hs_err_pid7.log")
		told := found.Findings[0].Evidence[len(found.Findings[0].Evidence)-1]
		if told != "hs_err_pid7.log, beside the core, "+c.want || len(found.Findings) != before {
			t.Errorf("%s: %q, %d findings more", name, told, len(found.Findings)-before)
		}
	}
	found := Judge(dump, facts(), "core")
	Beside(found, dump, facts(), file(func(r *hserr.Report) { r.NoMemory, r.Wanted = true, 1<<20 }), "hs_err_pid7.log")
	last := found.Findings[len(found.Findings)-1]
	if last.ID != profile.NativeMemory || !slices.ContainsFunc(last.Evidence, func(line string) bool {
		return strings.Contains(line, "hs_err_pid7.log")
	}) {
		t.Errorf("%+v", last)
	}
}
