package redact

import (
	_ "embed"
	"maps"
	"regexp"
	"strings"
)

// logWords are the words that stay in logs: those of goprof, of crash files (hotspot/share/utilities/vmError.cpp) and
// of most logs.
var logWords = func() map[string]bool {
	words := setOf(moreWords)
	maps.Copy(words, textWords)
	return words
}()

//go:embed logwords.txt
var moreWords string

var (
	// lineTime matches the time at the beginning of a line of a log, or the age of the JVM.
	lineTime = regexp.MustCompile(`^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?|` +
		`^\[\d{1,9}\.\d{3}s\]|^Event: \d{1,9}\.\d{3}\b`)
	// memoryDump matches a line with bytes of memory, which may be text.
	memoryDump = regexp.MustCompile(`^(?:=>)?\s*0x[0-9a-f]{8,16}:\s`)
	// setting matches a line of the environment or of properties, or one with a command line, and its whole value. It does
	// not match a line of registers: RAX=0x.
	setting = regexp.MustCompile(`^\s*(?:export\s+)?(?:[A-Za-z_][\w.-]*=([^0].*|0(?:[^x].*)?)|` +
		`(?:jvm_args|java_command|java_class_path[^:]*|Command Line):(.+))$`)
	// plainNumber matches numbers about the JVM: addresses, offsets, short fractions, seconds, sizes, process and thread.
	// Linux numbers processes up to 4194304 (PID_MAX_LIMIT).
	plainNumber = regexp.MustCompile(`\[0x[0-9a-f]{8,16}, ?0x[0-9a-f]{8,16}\)|` +
		`\b0x(?:0{0,4}7[ef][0-9a-f]{10}|0{0,16}[0-9a-f]{1,6})\b|\b[pt]id=\d{1,7}\b|\b\d{1,4}\.\d{1,3}\b|` +
		`\b\d{1,9}\.\d{1,9} sec(?:ond)?s\b|\b\d{1,10}K->\d{1,10}K(?:\(\d{1,10}K\))?|\(\d{1,10}k free\)|` +
		`\b(?:total|reserved|committed|used|capacity|physical|size|free)[ =:]+\d{1,10}[KkM][Bb]?\b`)
	// stackFrame matches a frame of a stack trace.
	stackFrame = regexp.MustCompile(`^(\s*at )([\w$.@-]*/)*([\w$.]+)\.([\w$<>]+)\(([\w$]+\.\w+)((?::\d+)?\))`)
	// nativeFrame matches a frame of native code in a crash file.
	nativeFrame = regexp.MustCompile(`^((?:# )?[CVv]  \[)([\w.+-]+?)(\+0x[0-9a-f]+\]\s+)(\S.*?)(\+0x[0-9a-f]+)?$`)
	// javaVersion matches the line of a crash file that names the JVM.
	javaVersion = regexp.MustCompile(`^# (?:JRE version|Java VM): `)
	// longNumber matches numbers that may identify a customer, a card or an order, even with letters after them.
	longNumber = regexp.MustCompile(`\b\d{5,}[A-Za-z]{0,3}\b`)
)

// Line redacts a line of a log, or of a file that a JVM wrote when it died. Its time stays, and so do words that nearly
// all logs have. Parts that are known to contain secrets are replaced as a whole.
func (r *Redactor) Line(text string) string {
	if head := memoryDump.FindString(text); head != "" {
		return head + "(left out)"
	}
	if at := setting.FindStringSubmatchIndex(text); at != nil {
		value := max(at[2], at[4])
		return r.logged(text[:value]) + r.hash.of(kindWord, text[value:])
	}
	if at := stackFrame.FindStringSubmatchIndex(text); at != nil {
		class, method := text[at[6]:at[7]], text[at[8]:at[9]]
		return text[:at[3]] + r.logged(text[at[3]:at[6]]) + r.Method(class+"."+method) + "(" +
			r.SourceOf(class, text[at[10]:at[11]]) + text[at[12]:at[13]] + r.logged(text[at[1]:])
	}
	if at := nativeFrame.FindStringSubmatch(text); at != nil {
		return at[1] + r.logged(at[2]) + at[3] + r.Native(at[4], at[2]) + at[5]
	}
	if head := javaVersion.FindString(text); head != "" {
		return head + r.Version(text[len(head):])
	}
	time := lineTime.FindString(text)
	parts := strings.Split(text[len(time):], "\t")
	for i := range parts {
		parts[i] = r.logPart(parts[i])
	}
	return time + strings.Join(parts, "\t")
}

// logPart returns a part of a line without a tab.
func (r *Redactor) logPart(text string) string {
	text = r.hideAddresses(text)
	var b strings.Builder
	from := 0
	for _, at := range plainNumber.FindAllStringIndex(text, maxWords) {
		b.WriteString(r.logged(text[from:at[0]]))
		b.WriteString(text[at[0]:at[1]])
		from = at[1]
	}
	b.WriteString(r.logged(text[from:]))
	return b.String()
}

func (r *Redactor) logged(text string) string {
	text = longNumber.ReplaceAllStringFunc(text, func(number string) string { return r.hash.of(kindNumber, number) })
	return r.sentence(text, logWords)
}
