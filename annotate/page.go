package annotate

import (
	"fmt"

	"goprof/profile"
)

// Page is one method with its samples.
type Page struct {
	Method string         `json:"method"`
	File   string         `json:"file,omitempty"` // of the source
	Weight profile.Weight `json:"weight"`
	Mode   string         `json:"mode,omitempty"` // of the recording, if not cpu
	All    int64          `json:"all"`            // samples of the recording
	Count
	// Methods are the methods with this name. They are several if the name is overloaded and the JVM distinguishes
	// them.
	Methods []Method `json:"methods"`
	// Inside are the compiled methods whose code contained the method. An entry without a name is the interpreter.
	Inside []Candidate `json:"inside"`
	Code   []Code      `json:"code"` // the one with the most samples first
	Notes  []string    `json:"notes,omitempty"`

	texts map[int32]string // source lines
}

// Method is one method by its lines and bytecodes.
type Method struct {
	Signature string `json:"signature,omitempty"` // as in class files; empty without the JVM
	Note      string `json:"note,omitempty"`      // for samples whose method is not known
	Lines     []Line `json:"lines"`               // with samples, in their order
	Rows      []Row  `json:"rows"`
}

// Line is a line of the source with its samples.
type Line struct {
	Line   int32  `json:"line"` // 0: unknown
	Source string `json:"source,omitempty"`
	Count
}

// Row is a bytecode with its samples. Without the JVM, a page has only rows with samples, sorted by line. With the JVM
// it has all rows, in the order of the bytecodes.
type Row struct {
	Line     int32  `json:"line,omitempty"` // 0: unknown
	BCI      int32  `json:"bci"`            // -1: somewhere in the method
	Bytecode string `json:"bytecode,omitempty"`
	Count
}

// Code is machine code of the method, or of a method that it is inlined into. In the latter case the samples are those
// that found the method there.
type Code struct {
	Method    string `json:"method"`
	Compiler  string `json:"compiler"`
	Level     uint8  `json:"level"`
	CompileID int32  `json:"compile_id"`
	OSR       bool   `json:"osr"`
	EntryBCI  int32  `json:"entry_bci"` // of OSR code (for a running loop), otherwise -1
	Signature string `json:"signature"`
	Begin     uint64 `json:"begin"`
	Size      int    `json:"size"`
	Count
	Instructions []Instruction `json:"instructions"`
}

// Instruction is a machine instruction with its samples. Self counts samples in which it was the next instruction to
// run. Total also counts samples in calls that it made.
type Instruction struct {
	Offset uint32 `json:"offset"`
	Bytes  string `json:"bytes"` // in hexadecimal digits
	Text   string `json:"text"`
	Note   string `json:"note,omitempty"` // what it calls, or its purpose
	// Place is the Java code of the instruction, the innermost method first. It is empty if it is not known. Sure is
	// Certain if the JVM has a record of the place, and Likely or Guessed if goprof infers it.
	Place []string          `json:"place,omitempty"`
	Sure  profile.Certainty `json:"-"`
	How   string            `json:"certainty,omitempty"`
	Count
}

// Place returns a method with a line and a bytecode index as text.
func Place(method string, line, bci int32) string {
	if bci < 0 { // the line is the method's first line
		return method
	}
	return fmt.Sprintf("%s:%d @%d", method, line, bci)
}
