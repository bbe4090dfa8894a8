package hserr

import (
	"fmt"
	"strconv"
	"strings"

	"goprof/arch"
	"goprof/arch/cpus"
)

// number returns the first text that is a number of bytes: "536870912", "524288 k", "512.00M".
func number(texts ...string) uint64 {
	for _, text := range texts {
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		digits, unit := fields[0], ""
		if len(fields) > 1 {
			unit = fields[1]
		}
		if last := len(digits) - 1; strings.ContainsRune("kKMGT", rune(digits[last])) {
			digits, unit = digits[:last], digits[last:]
		}
		n, err := strconv.ParseFloat(digits, 64)
		if err != nil || n <= 0 || n > 1<<60 {
			continue
		}
		for _, u := range []struct {
			begins string
			shift  uint
		}{{"k", 10}, {"K", 10}, {"M", 20}, {"G", 30}, {"T", 40}} {
			if strings.HasPrefix(unit, u.begins) && n < float64(uint64(1)<<(62-u.shift)) {
				n *= float64(uint64(1) << u.shift)
				break
			}
		}
		return uint64(n)
	}
	return 0
}

// evidence returns the evidence that all findings share.
func (r *Report) evidence() (lines []string) {
	if r.Signal != "" {
		text := fmt.Sprintf("%s at pc 0x%x", r.Signal, r.PC)
		if r.SigCode != "" {
			text += ", " + r.SigCode
		}
		if r.HasAddr {
			text += fmt.Sprintf(", at the address 0x%x", r.Addr)
		}
		lines = append(lines, text)
	}
	if r.Frame.Text != "" {
		lines = append(lines, fmt.Sprintf("problematic frame (%s): %s", frameKinds[r.Frame.Kind], r.Frame.Text))
	}
	if r.Thread != "" {
		text := "thread: " + r.Thread
		if words := states[r.State]; words != "" {
			text += ", " + words
		}
		lines = append(lines, text)
	}
	if text := r.instruction(); text != "" {
		lines = append(lines, text)
	}
	return append(lines, r.pointers()...)
}

var frameKinds = map[byte]string{'J': "compiled Java", 'j': "interpreted Java", 'V': "the JVM",
	'v': "the JVM's generated code",
	'C': "native code", 'A': "ahead-of-time compiled Java"}

var states = map[string]string{"_thread_in_native": "in native code", "_thread_in_vm": "in the JVM",
	"_thread_in_Java": "in Java code", "_thread_blocked": "blocked", "_thread_new": "not begun yet"}

// cpu returns the CPU of the machine that crashed, or nil if it is not known.
func (r *Report) cpu() *arch.CPU {
	switch r.Arch {
	case "amd64":
		return cpus.ByName("amd64")
	case "aarch64":
		return cpus.ByName("arm64")
	}
	return nil
}

// instruction describes the machine code at the pc.
func (r *Report) instruction() string {
	at := r.PC - r.CodeAt
	if len(r.Code) == 0 || r.PC < r.CodeAt || at >= uint64(len(r.Code)) {
		return ""
	}
	cpu := r.cpu()
	var in arch.Inst
	if cpu == nil || !cpu.Read(r.Code, uint32(at), &in) || in.Len == 0 || at+uint64(in.Len) > uint64(len(r.Code)) {
		return fmt.Sprintf("the code at the pc begins with % x, which is no instruction that goprof knows",
			r.Code[at:min(at+8, uint64(len(r.Code)))])
	}
	return fmt.Sprintf("the instruction at the pc is % x (%d bytes), %s", r.Code[at:at+uint64(in.Len)], in.Len,
		flows[in.Flow])
}

var flows = map[arch.Flow]string{arch.FlowNext: "one that goes on behind itself", arch.FlowBranch: "a branch",
	arch.FlowJump: "a jump",
	arch.FlowCall: "a call", arch.FlowReturn: "a return: the stack is damaged",
	arch.FlowEnds: "a trap, which code ends in that must not go on"}

// nearPointer is the largest distance from a register's value to an access that used the register as its base.
const nearPointer = 4 << 10

// pointers returns the registers from which the address of the access can come.
func (r *Report) pointers() (lines []string) {
	if !r.HasAddr || r.Signal != "SIGSEGV" && r.Signal != "SIGBUS" {
		return nil
	}
	var names []string
	for _, reg := range r.Registers {
		switch reg.Name {
		case "RIP", "EFLAGS", "CSGSFS", "ERR", "TRAPNO", "PC":
			continue
		}
		if off := r.Addr - reg.Value; off < nearPointer {
			text := reg.Name
			if off > 0 {
				text += fmt.Sprintf("+%d", off)
			}
			names = append(names, text)
		}
	}
	if len(names) == 0 || len(names) > 6 {
		return nil
	}
	return []string{"the address can come from " + strings.Join(names, ", ")}
}

// notes describes the JVM that crashed, and the memory that was left.
func (r *Report) notes() (lines []string) {
	add := func(format string, values ...any) { lines = append(lines, fmt.Sprintf(format, values...)) }
	for _, text := range []string{r.JRE, r.VM} {
		if text != "" {
			add("%s", text)
		}
	}
	if r.Elapsed != "" {
		add("it had run for %s", r.Elapsed)
	}
	if total := r.Memory["MemTotal"]; total > 0 {
		text := "the machine has " + bytesText(total)
		if free, ok := r.Memory["MemAvailable"]; ok {
			text += ", of which " + bytesText(free) + " were available"
		}
		if swap := r.Memory["SwapTotal"]; swap > 0 {
			text += fmt.Sprintf("; %s of %s of swap were free", bytesText(r.Memory["SwapFree"]), bytesText(swap))
		}
		add("%s", text)
	}
	for _, text := range []string{r.Virtual, r.Resident} {
		if text != "" {
			add("%s", text)
		}
	}
	if len(r.Heap) > 0 {
		add("heap: %s", r.Heap[0])
	}
	return lines
}
