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
	Mode   string         `json:"mode,omitempty"` // of the recording, if it is not cpu
	All    int64          `json:"all"`            // of the recording
	Count
	// Methods are those of the name: several if it is overloaded and the JVM distinguishes them.
	Methods []Method `json:"methods"`
	// Inside are the compiled methods in whose code the method ran; an entry without a name is the interpreter.
	Inside []Candidate `json:"inside"`
	Code   []Code      `json:"code"` // the one with most samples first
	Notes  []string    `json:"notes,omitempty"`

	texts map[int32]string // of the lines of the source
}

// Method is one method by its lines and bytecodes.
type Method struct {
	Signature string `json:"signature,omitempty"` // as in class files, if the JVM was asked
	Note      string `json:"note,omitempty"`      // of samples of which it is not known in which method they are
	Lines     []Line `json:"lines"`               // those with samples, in their order
	Rows      []Row  `json:"rows"`
}

// Line is a line of the source with its samples.
type Line struct {
	Line   int32  `json:"line"` // 0: not known
	Source string `json:"source,omitempty"`
	Count
}

// Row is a bytecode with its samples. With only a recording, a page has rows with samples, sorted by line. With the JVM
// it has all rows, in the order of the bytecodes.
type Row struct {
	Line     int32  `json:"line,omitempty"` // 0 if it is not known
	BCI      int32  `json:"bci"`            // -1: somewhere in the method
	Bytecode string `json:"bytecode,omitempty"`
	Count
}

// Code is machine code that a compiler made of the method, or of one into which it is inlined. Then the samples are
// those that found the method there.
type Code struct {
	Method    string `json:"method"`
	Compiler  string `json:"compiler"`
	Level     uint8  `json:"level"`
	CompileID int32  `json:"compile_id"`
	OSR       bool   `json:"osr"`
	EntryBCI  int32  `json:"entry_bci"` // of code for a running loop, otherwise -1
	Signature string `json:"signature"`
	Begin     uint64 `json:"begin"`
	Size      int    `json:"size"`
	Count
	Instructions []Instruction `json:"instructions"`
}

// Instruction is a machine instruction with its samples. Self counts the samples in which the instruction would have
// run next. Total also counts the samples in calls that the instruction made.
type Instruction struct {
	Offset uint32 `json:"offset"`
	Bytes  string `json:"bytes"` // in hexadecimal digits
	Text   string `json:"text"`
	Note   string `json:"note,omitempty"` // what it calls, or what it is for
	// Place is the Java code of the instruction, the innermost method first, empty if it is not known. Sure is Certain
	// if the JVM has a record of the place, and Likely or Guessed if goprof infers it.
	Place []string          `json:"place,omitempty"`
	Sure  profile.Certainty `json:"-"`
	How   string            `json:"certainty,omitempty"`
	Count
}

// Place is a method with a line and a bytecode index as the page shows it.
func Place(method string, line, bci int32) string {
	if bci < 0 { // its line is the method's first
		return method
	}
	return fmt.Sprintf("%s:%d @%d", method, line, bci)
}
