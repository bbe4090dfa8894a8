package redaction

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"goprof/output"
	"goprof/output/jfr"
	"goprof/output/outfile"
	"goprof/output/pprof"
	"goprof/output/recording"
	"goprof/profile/redact"
)

type Kind uint8

// The kinds of files that are rewritten in their own format. Other kinds are unknown.
const (
	Unknown Kind = iota
	JFR
	PProf
	Collapsed
	JSON
	Log // lines of text: a log, or a JVM's crash file
)

var kindNames = [...]string{"unknown", "jfr", "pprof", "collapsed", "json", "log"}

func (k Kind) String() string { return kindNames[k] }

// Account says what was done with a file.
type Account struct {
	JFR *jfr.Redacted // of a JFR file
}

// sniffed is how many bytes at the beginning show a file's kind.
const sniffed = 64 << 10

// KindOf returns a file's kind by its beginning.
func KindOf(head []byte) Kind {
	if isGzip(head) {
		if z, err := gzip.NewReader(bytes.NewReader(head)); err == nil {
			start := make([]byte, 512)
			n, _ := io.ReadFull(z, start)
			switch k := KindOf(start[:n]); k {
			case JFR, Collapsed, Log:
				return k
			}
		}
		return PProf
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	const sampleType = 1<<3 | 2 // profile.proto, field 1
	switch {
	case bytes.HasPrefix(head, []byte("FLR\x00")):
		return JFR
	case len(head) > 1 && head[0] == sampleType && head[1] < ' ' && !bytes.ContainsRune([]byte("\t\n\r"),
		rune(head[1])):
		return PProf
	case len(text) > 0 && text[0] == '{':
		return JSON
	case len(text) > 0 && text[0] != '<' && isText(head) && isStacks(head):
		return Collapsed
	case len(text) > 0 && text[0] != '<' && isText(head):
		return Log
	}
	return Unknown
}

func isGzip(head []byte) bool { return len(head) >= 2 && head[0] == 0x1f && head[1] == 0x8b }

func isText(head []byte) bool {
	return !bytes.ContainsFunc(head, func(c rune) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' })
}

// maxFile bounds a file that is read completely into memory.
const maxFile = 1 << 30

// Input is a file to redact.
type Input struct {
	Kind Kind
	file *os.File
	size int64
	head *bufio.Reader
	own  []io.Closer
}

// Open opens a file, and finds its Kind. Errors of opening are those of package os.
func Open(name string) (*Input, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	in := &Input{file: file, own: []io.Closer{file}}
	info, err := file.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = errors.New("it is a folder")
	default:
		in.size = info.Size()
		in.head = bufio.NewReaderSize(file, sniffed)
		var head []byte
		head, err = in.head.Peek(sniffed)
		if err == io.EOF {
			err = nil
		}
		in.Kind = KindOf(head)
		if in.Kind == JFR && (isGzip(head) || !info.Mode().IsRegular()) && err == nil {
			if in.file, in.size, err = recording.Spool(in.head, isGzip(head)); err == nil {
				in.own = append(in.own, in.file)
			}
		}
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

func (in *Input) Close() {
	for _, c := range in.own {
		c.Close()
	}
}

// Rewrite writes the file again in its own format.
func (in *Input) Rewrite(to io.Writer, by *redact.Redactor) (*Account, error) {
	account := &Account{}
	var err error
	switch in.Kind {
	case JFR:
		account.JFR, err = jfr.Redact(to, in.file, in.size, by, func() (jfr.Spill, error) { return outfile.Unnamed() })
	case PProf:
		err = pprof.Redact(to, in.head, by)
	case Collapsed:
		err = in.lines(to, by, rewriteCollapsed)
	case Log:
		err = in.lines(to, by, rewriteLog)
	case JSON:
		err = rewriteJSON(to, limited(in.head), by)
	default:
		err = &output.BadFile{Problem: "it is neither JFR, pprof, collapsed stacks, goprof's JSON nor a log"}
	}
	return account, err
}

// lines rewrites text, which may be packed.
func (in *Input) lines(to io.Writer, by *redact.Redactor,
	rewrite func(io.Writer, io.Reader, *redact.Redactor) error) error {
	head, _ := in.head.Peek(2)
	if !isGzip(head) {
		return rewrite(to, limited(in.head), by)
	}
	z, err := gzip.NewReader(in.head)
	if err != nil {
		return &output.BadFile{Problem: "it is packed, but damaged: " + err.Error()}
	}
	return rewrite(to, limited(z), by)
}

// Rewrite writes goprof's JSON, or a log, without names. It is for a part of a file.
func Rewrite(to io.Writer, from io.Reader, kind Kind, by *redact.Redactor) error {
	from = limited(from)
	if kind == JSON {
		return rewriteJSON(to, from, by)
	}
	return rewriteLog(to, from, by)
}

// limited returns a reader that fails after maxFile bytes.
func limited(from io.Reader) io.Reader {
	return &output.Bounded{From: from, Left: maxFile, Problem: fmt.Sprintf("more than %d GiB of it", maxFile>>30)}
}
