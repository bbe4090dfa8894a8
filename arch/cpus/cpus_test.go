package cpus

import (
	"io/fs"
	"os"
	"reflect"
	"slices"
	"testing"

	"goprof/arch"
)

// TestTwins: the folders of the CPUs have the same files.
func TestTwins(t *testing.T) {
	var want []string
	for _, cpu := range All() {
		var names []string
		entries, err := fs.ReadDir(os.DirFS("../"+cpu.Name), ".")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !e.IsDir() { // testdata holds what a fuzzer found
				names = append(names, e.Name())
			}
		}
		if want == nil {
			want = names
		}
		if !slices.Equal(names, want) || len(names) < 10 {
			t.Errorf("arch/%s has %v, arch/%s %v", cpu.Name, names, All()[0].Name, want)
		}
	}
}

// leftOut are the facts that a CPU may leave out. All other facts have a value other than 0, so that a forgotten one
// shows. A fact that is DWARF's register 0 counts as left out.
var leftOut = map[string][]string{
	"amd64": {"ReturnsInRegister", "ConstantsApart", "FreesHeapBase", "SyscallResult", "SyscallInst",
		"SyscallNumber", "Signs", "SenderSPVaries", "Sigreturn", "SigRegs"},
	"arm64": {"SyscallResult", "SigInfo", "DearClock", "ShortJump"},
}

func TestFactsAreTold(t *testing.T) {
	for _, cpu := range All() {
		facts := reflect.ValueOf(cpu.Facts)
		for i := range facts.NumField() {
			name := facts.Type().Field(i).Name
			if missing := facts.Field(i).IsZero(); missing != slices.Contains(leftOut[cpu.Name], name) {
				t.Errorf("%s: %s left out: %v", cpu.Name, name, missing)
			}
		}
	}
}

func TestChoice(t *testing.T) {
	for _, cpu := range All() {
		if ByName(cpu.Name) != cpu || ByMachine(cpu.Machine) != cpu {
			t.Errorf("%s is not found", cpu.Name)
		}
		if cpu.ReturnsInRegister != (cpu.LR >= 0) || cpu.FP == cpu.SP || cpu.PC >= arch.MaxRegs {
			t.Errorf("%s: registers %d %d %d %d", cpu.Name, cpu.PC, cpu.SP, cpu.FP, cpu.LR)
		}
	}
	if ByName("riscv64") != nil || ByMachine(0) != nil {
		t.Error("a CPU that nobody knows is known")
	}
}
