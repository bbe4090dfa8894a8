package autopsy

import (
	"fmt"
	"slices"
	"strings"

	"goprof/profile"
	"goprof/session/postmortem"
	"goprof/triage/hserr"
)

// Beside adds the contents of the JVM's crash file to the findings of a core of the same death. It says whether the two
// agree, and adds findings that rest on facts of the crash file alone. name is the name of the crash file.
func Beside(t *profile.Triage, d *profile.Dump, f *postmortem.Facts, file *hserr.Report, name string) {
	core := reportOf(d, f)
	if core == nil || len(t.Findings) == 0 {
		return
	}
	first := &t.Findings[0]
	first.Evidence = append(first.Evidence, name+", beside the core, "+compared(core, file))
	for _, found := range hserr.Judge(file).Findings {
		has := func(f profile.Finding) bool { return f.ID == found.ID }
		if slices.Contains(ofTheMachine, found.ID) && !slices.ContainsFunc(t.Findings, has) {
			found.Evidence = append(found.Evidence, "this is said by "+name)
			t.Findings = append(t.Findings, found)
		}
	}
}

// ofTheMachine are the findings that rest on the JVM's own view of the machine and its limits. A core does not hold
// these facts.
var ofTheMachine = []profile.FindingID{profile.NativeMemory, profile.ContainerLimit}

// compared says where a crash file and a core agree, or where they do not.
func compared(core, file *hserr.Report) string {
	if file.Signal == "" {
		for _, text := range []string{file.Message, file.Internal} {
			if text != "" {
				return "says: " + text
			}
		}
		return "speaks of no signal"
	}
	var same, other []string
	compare := func(what, inFile, inCore string) {
		if inFile == inCore {
			same = append(same, what+" "+inFile)
		} else {
			other = append(other, fmt.Sprintf("%s %s, the core %s", what, inFile, inCore))
		}
	}
	compare("process", fmt.Sprint(file.PID), fmt.Sprint(core.PID))
	compare("signal", file.Signal, core.Signal)
	compare("pc", fmt.Sprintf("%#x", file.PC), fmt.Sprintf("%#x", core.PC))
	if file.HasAddr && core.HasAddr {
		compare("address", fmt.Sprintf("%#x", file.Addr), fmt.Sprintf("%#x", core.Addr))
	}
	if len(other) > 0 {
		return "says otherwise: " + strings.Join(other, "; ")
	}
	return "says the same: " + strings.Join(same, ", ")
}
