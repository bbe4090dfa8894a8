// Package cpus lists all CPUs. Code that chooses a CPU by a name or a number imports it.
package cpus

import (
	"debug/elf"
	"runtime"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/arch/arm64"
)

// All are the CPUs that goprof knows.
func All() []*arch.CPU { return []*arch.CPU{amd64.CPU, arm64.CPU} }

// ByName returns the CPU that GOARCH calls name, or nil.
func ByName(name string) *arch.CPU {
	for _, c := range All() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// ByMachine returns the CPU of an ELF machine number, or nil.
func ByMachine(m elf.Machine) *arch.CPU {
	for _, c := range All() {
		if c.Machine == m {
			return c
		}
	}
	return nil
}

// Here returns the CPU that this program runs on, or nil.
func Here() *arch.CPU { return ByName(runtime.GOARCH) }
