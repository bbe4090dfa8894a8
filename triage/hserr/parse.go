package hserr

import (
	"bufio"
	"encoding/hex"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Report holds the facts of a crash file. A fact that is empty or 0 is not known.
type Report struct {
	Signal   string // SIGSEGV
	SigCode  string // SEGV_MAPERR, SI_USER
	Addr     uint64 // the accessed address, if HasAddr
	HasAddr  bool
	SentBy   int // the process that sent the signal
	Internal string
	Message  string // of an internal error, or of a failed allocation
	NoMemory bool   // the JVM ended because memory was short
	Wanted   uint64 // bytes that could not be allocated

	PC       uint64
	PID      int
	JRE, VM  string
	Frame    Frame // the "problematic frame"
	Thread   string
	State    string // _thread_in_native
	Task     string // what the compiler thread was compiling
	Frames   []Frame
	Java     []Frame
	Stack    [2]uint64 // of the thread, from its end on
	SP       uint64
	Overflow bool // the file itself reports a stack overflow

	Registers []Register
	Code      []byte // around the pc
	CodeAt    uint64
	Arch      string // "amd64", "aarch64"

	Elapsed  string
	Heap     []string
	Memory   map[string]uint64 // of /proc/meminfo, in bytes
	Limits   string
	Virtual  string // "Virtual Size: ..." of the process
	Resident string
	Cgroup   map[string]string
	Whole    bool // the file is complete
}

// Frame is a line of a stack: its kind (J, j, V, v, C or A) and the rest.
type Frame struct {
	Kind byte
	Text string
}

// Register is a register and its value.
type Register struct {
	Name  string
	Value uint64
}

// Limits of what is read.
const (
	maxBytes  = 64 << 20
	maxLine   = 16 << 10
	maxFrames = 1 << 10
	maxText   = 512 // bytes kept of a line
	maxCode   = 4 << 10
	maxHeap   = 12
	maxFacts  = 256
)

// ErrNone is returned if the file is not a crash file.
var ErrNone = errors.New("it is no crash file of HotSpot: those begin with # and report a fatal error, or of " +
	"insufficient memory")

// Is reports whether a file that begins with head is a crash file.
func Is(head []byte) bool {
	text := string(head)
	return strings.HasPrefix(strings.TrimLeft(text, "\r\n"), "#") && (strings.Contains(text, fatal) ||
		strings.Contains(text, noMemory) || strings.Contains(text, overflow))
}

const (
	fatal    = "A fatal error has been detected by the Java Runtime Environment"
	noMemory = "There is insufficient memory for the Java Runtime Environment to continue"
	overflow = "An irrecoverable stack overflow has occurred"
)

// Parse reads a crash file.
func Parse(from io.Reader) (*Report, error) {
	p := &parser{r: &Report{Memory: make(map[string]uint64), Cgroup: make(map[string]string)}}
	lines := bufio.NewReaderSize(io.LimitReader(from, maxBytes), maxLine)
	for {
		line, more, err := lines.ReadLine()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		p.line(strings.TrimRight(string(line), "\r"))
		for more && err == nil { // skip the rest of a long line
			_, more, err = lines.ReadLine()
		}
	}
	if !p.is {
		return nil, ErrNone
	}
	return p.r, nil
}

type parser struct {
	r    *Report
	is   bool
	part string // the part of the file that the line is in
}

var (
	signalLine = regexp.MustCompile(`^#\s+(SIG[A-Z0-9]+) \(0x[0-9a-f]+\) at pc=0x([0-9a-fA-F]+).*?pid=(\d+)`)
	errorLine  = regexp.MustCompile(`^#\s+(Internal Error|Out of Memory Error) \(([^)]*)\).*?pid=(\d+)`)
	siginfo    = regexp.MustCompile(`^siginfo:.*?si_code[:=] ?-?\d+(?: \(([A-Z0-9_]+)\))?(?:.*?si_addr[:=] ?(0x[0-9a-fA-F]+))?`)
	sentBy     = regexp.MustCompile(`(?:si_pid: |sent from pid: )(\d+)`)
	failedFor  = regexp.MustCompile(`failed to (?:map|allocate|commit|reserve) (\d+) bytes`)
	threadLine = regexp.MustCompile(`^Current thread \(0x[0-9a-f]+\):\s+(.*)$`)
	stateIn    = regexp.MustCompile(`\[(_thread_[a-z_]+)`)
	stackLine  = regexp.MustCompile(`^Stack: \[0x([0-9a-f]+),0x([0-9a-f]+)\]`)
	stackPtr   = regexp.MustCompile(`sp=0x([0-9a-f]+)`)
	frameLine  = regexp.MustCompile(`^([JjVvCA])\s+(\S.*)$`)
	register   = regexp.MustCompile(`\b([A-Z][A-Z0-9]{1,6})\s*=0x([0-9a-fA-F]{16})\b`)
	codeLine   = regexp.MustCompile(`^(?:=>)?0x([0-9a-fA-F]+):\s+((?:[0-9a-fA-F]{2}[ ]*)+)$`)
	meminfo    = regexp.MustCompile(`^([A-Z][A-Za-z_()]+):\s+(\d+) kB$`)
	cgroupLine = regexp.MustCompile(`^([a-z_]*(?:memory|pids|swap)[a-z_.]*)(?: in bytes)?:\s+(\S.*)$`)
)

func cut(text string) string { return text[:min(len(text), maxText)] }

func hexNumber(text string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	return n
}

func (p *parser) line(line string) {
	r := p.r
	if strings.HasPrefix(line, "#") {
		p.head(line)
		return
	}
	switch trimmed := strings.TrimSpace(line); {
	case trimmed == "":
		if p.part != "meminfo" && p.part != "cgroup" {
			p.part = ""
		}
		return
	case strings.HasPrefix(line, "END.") || strings.HasPrefix(line, "---------------  E N D"):
		r.Whole = true
	case strings.HasPrefix(line, "---------------"):
		p.part = ""
	case strings.HasPrefix(line, "Native frames:"):
		p.part = "native"
	case strings.HasPrefix(line, "Java frames:"):
		p.part = "java"
	case strings.HasPrefix(line, "Registers:"):
		p.part = "registers"
	case strings.HasPrefix(line, "Instructions:"):
		p.part = "code"
	case strings.HasPrefix(line, "Heap:"), strings.HasPrefix(line, "Heap (") || line == "Heap":
		p.part = "heap"
	case strings.HasPrefix(line, "/proc/meminfo:"):
		p.part = "meminfo"
	case strings.HasPrefix(line, "container (cgroup) information:"):
		p.part = "cgroup"
	case strings.HasPrefix(line, "Current CompileTask:"):
		p.part = "task"
	case strings.HasPrefix(line, "VM Arguments:"), strings.HasPrefix(line, "Environment Variables:"),
		strings.HasPrefix(line, "Dynamic libraries:"), strings.HasPrefix(line, "Command Line:"):
		p.part = "secret"
	case p.part == "secret":
	case p.parseListLine(line):
	default:
		p.fact(line)
	}
}

// head reads a line of the first part of the file.
func (p *parser) head(line string) {
	r := p.r
	text := strings.TrimSpace(strings.TrimPrefix(line, "#"))
	switch {
	case strings.Contains(text, fatal):
		p.is = true
	case strings.Contains(text, noMemory):
		p.is, r.NoMemory = true, true
	case strings.Contains(text, overflow):
		p.is, r.Overflow = true, true
	case strings.HasPrefix(text, "JRE version:"):
		r.JRE = cut(strings.TrimSpace(text[len("JRE version:"):]))
	case strings.HasPrefix(text, "Java VM:"):
		r.VM = cut(strings.TrimSpace(text[len("Java VM:"):]))
		r.Arch = archOf(r.VM)
	case strings.HasPrefix(text, "Problematic frame:"):
		p.part = "frame"
	case p.part == "frame":
		p.part = ""
		if m := frameLine.FindStringSubmatch(text); m != nil {
			r.Frame = Frame{m[1][0], cut(m[2])}
		}
	case failedFor.MatchString(text):
		r.Message = cut(text)
		r.Wanted, _ = strconv.ParseUint(failedFor.FindStringSubmatch(text)[1], 10, 64)
	case strings.HasPrefix(text, "fatal error:"), strings.HasPrefix(text, "Error:"), strings.HasPrefix(text, "assert("),
		strings.HasPrefix(text, "guarantee("):
		r.Message = cut(text)
	}
	if m := signalLine.FindStringSubmatch(line); m != nil {
		r.Signal, r.PC = m[1], hexNumber(m[2])
		r.PID, _ = strconv.Atoi(m[3])
	} else if m := errorLine.FindStringSubmatch(line); m != nil {
		r.Internal = cut(m[1] + " (" + m[2] + ")")
		r.PID, _ = strconv.Atoi(m[3])
	}
}

func archOf(vm string) string {
	for _, a := range []string{"amd64", "aarch64", "x86"} {
		if strings.Contains(vm, "-"+a) {
			return a
		}
	}
	return ""
}

func (p *parser) parseListLine(line string) bool {
	r := p.r
	switch p.part {
	case "native", "java":
		m := frameLine.FindStringSubmatch(line)
		if m == nil {
			return false
		}
		to := &r.Frames
		if p.part == "java" {
			to = &r.Java
		}
		if len(*to) < maxFrames {
			*to = append(*to, Frame{m[1][0], cut(m[2])})
		}
	case "registers":
		for _, m := range register.FindAllStringSubmatch(line, -1) {
			if len(r.Registers) < maxFacts {
				r.Registers = append(r.Registers, Register{m[1], hexNumber(m[2])})
			}
		}
	case "code":
		p.code(line)
	case "heap":
		if len(r.Heap) < maxHeap {
			r.Heap = append(r.Heap, cut(strings.TrimSpace(line)))
		}
	case "task":
		if r.Task == "" && strings.Contains(line, "::") {
			r.Task = cut(strings.TrimSpace(line))
		}
		return strings.HasPrefix(line, "C1:") || strings.HasPrefix(line, "C2:") || strings.HasPrefix(line, " ")
	case "meminfo":
		m := meminfo.FindStringSubmatch(line)
		if m == nil {
			p.part = ""
			return false
		}
		if kB, err := strconv.ParseUint(m[2], 10, 50); err == nil && len(r.Memory) < maxFacts {
			r.Memory[m[1]] = kB << 10
		}
	case "cgroup":
		m := cgroupLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			return false
		}
		if len(r.Cgroup) < maxFacts {
			r.Cgroup[m[1]] = cut(m[2])
		}
	default:
		return false
	}
	return true
}

// code reads a line of the bytes around the pc.
func (p *parser) code(line string) {
	r := p.r
	m := codeLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	b, err := hex.DecodeString(strings.ReplaceAll(m[2], " ", ""))
	at := hexNumber(m[1])
	switch {
	case err != nil, len(r.Code)+len(b) > maxCode:
	case len(r.Code) == 0:
		r.Code, r.CodeAt = b, at
	case at == r.CodeAt+uint64(len(r.Code)):
		r.Code = append(r.Code, b...)
	}
}

// fact reads a line that has the same meaning everywhere.
func (p *parser) fact(line string) {
	r := p.r
	if m := siginfo.FindStringSubmatch(line); m != nil {
		r.SigCode = m[1]
		if m[2] != "" {
			r.Addr, r.HasAddr = hexNumber(m[2]), true
		}
		if m := sentBy.FindStringSubmatch(line); m != nil {
			r.SentBy, _ = strconv.Atoi(m[1])
		}
		return
	}
	switch {
	case r.Thread == "" && threadLine.MatchString(line):
		text := threadLine.FindStringSubmatch(line)[1]
		if m := stateIn.FindStringSubmatch(text); m != nil {
			r.State = m[1]
		}
		text, _, _ = strings.Cut(text, "[")
		r.Thread = cut(strings.TrimSpace(text))
	case strings.HasPrefix(line, "Current thread is native thread") && r.Thread == "":
		r.Thread = "a native thread that the JVM does not know"
	case stackLine.MatchString(line) && r.Stack[1] == 0:
		m := stackLine.FindStringSubmatch(line)
		r.Stack = [2]uint64{hexNumber(m[1]), hexNumber(m[2])}
		if m := stackPtr.FindStringSubmatch(line); m != nil {
			r.SP = hexNumber(m[1])
		}
	case strings.HasPrefix(line, "rlimit"):
		r.Limits = cut(line)
	case strings.HasPrefix(line, "Virtual Size:"):
		r.Virtual = cut(line)
	case strings.HasPrefix(line, "Resident Set Size:"):
		r.Resident = cut(line)
	case strings.Contains(line, "elapsed time:") && r.Elapsed == "":
		text := line[strings.Index(line, "elapsed time:")+len("elapsed time:"):]
		r.Elapsed = cut(strings.TrimSpace(text))
		r.Whole = r.Whole || strings.Contains(r.VM, "VM (25.") // in JDK 8 this is the last line
	}
}
