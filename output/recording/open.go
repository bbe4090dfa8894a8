package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"goprof/output"
	"goprof/output/jfr"
	"goprof/output/outfile"
	"goprof/output/pprof"
	"goprof/output/snap"
	"goprof/profile"
)

// Stdin is the name for standard input.
const Stdin = outfile.Stdout

// Options set which part of a file is read. The zero value has the defaults.
type Options struct {
	// Event chooses the samples of a JFR file: one of EventGroups, or names of events, separated by commas. If it is
	// empty, these are tried in turn: CPU time, wall-clock time, any other events.
	Event string
	// All reads all parts of a recording with several. Do not combine it with Event and Weight, which are for one part.
	All bool
	// Weight chooses the weight of samples. Meta.Weight of Info has the result. Nil is the recording's own weight.
	Weight *profile.Weight
	// Stdin is the input for the name "-". Nil is the process's standard input.
	Stdin io.Reader
	// Regular refuses a name that is now a link, a pipe or a device.
	Regular bool
}

// File is an open recording. It is a Source, and has marks if its format has them.
type File struct {
	source
	close func() error
}

type source interface {
	Marked
	info() *Info
}

func (f *File) Close() error {
	if f.close == nil {
		return nil
	}
	return f.close()
}

// Each visits the samples. The sum of their weights must not overflow.
func (f *File) Each(visit func(*profile.Sample) error) error { return f.Visit(AllStacks, visit) }

// Visit visits the samples with the stacks that the caller needs. Only samples of JFR files can lack theirs.
func (f *File) Visit(stacks Stacks, visit func(*profile.Sample) error) error {
	return Visit(f.source, stacks, added(visit))
}

// Tree returns the tree of a collapsed file, with everything in its labels. It is nil for other files.
func (f *File) Tree() *output.Tree {
	if c, ok := f.source.(*collapsedFile); ok {
		return c.tree
	}
	return nil
}

// Describe adds the account of a collapsed file's recording, which is in the file beside it.
func (f *File) Describe(s *profile.Summary) {
	if c, ok := f.source.(*collapsedFile); ok {
		c.Describe(s)
	}
}

// Lacks is the error for a file that does not contain what the caller wants.
type Lacks struct {
	Problem string
	Remedy  string // a command, or an instruction
}

func (e *Lacks) Error() string { return e.Problem }

// IsBad reports whether an error is about a file's content, and not about reading it.
func IsBad(err error) bool {
	var lacks *Lacks
	var text *output.BadFile
	var chunk *jfr.BadRecording
	var proto *pprof.Bad
	return errors.As(err, &lacks) || errors.As(err, &text) || errors.As(err, &chunk) || errors.As(err, &proto)
}

// Open opens a recording of any format that goprof reads. Errors of opening are those of package os.
func Open(name string, o Options) (*File, error) {
	in, err := openInput(name, &o)
	if err != nil {
		return nil, err
	}
	f, err := in.open(name, o)
	if err == nil && o.Weight != nil {
		err = setWeight(f.info(), *o.Weight)
	}
	if err != nil {
		in.close()
		return nil, err
	}
	if _, keeps := f.source.(*jfrFile); !keeps { // the other formats are in memory
		in.close()
		return f, nil
	}
	f.close = in.close
	return f, nil
}

func setWeight(i *Info, w profile.Weight) error {
	if slices.Contains(i.Weights, w) {
		i.Meta.Weight, i.Asked = w, true
		return nil
	}
	var has []string
	for _, w := range i.Weights {
		has = append(has, w.String())
	}
	return &Lacks{Problem: fmt.Sprintf("it does not say %s; it has %s", weightWords[w], strings.Join(has, ", ")),
		Remedy: "--weight " + i.Meta.Weight.String()}
}

var weightWords = map[profile.Weight]string{
	profile.Samples: "how many samples there are", profile.CPUTime: "how much CPU time samples stand for",
	profile.WallTime: "how much time samples stand for", profile.Bytes: "how many bytes samples stand for",
}

// input is a recording's file.
type input struct {
	file io.ReaderAt // nil for a stream
	size int64
	from *bufio.Reader // the whole input
	own  []io.Closer
}

func (in *input) close() error {
	var all []error
	for _, c := range in.own {
		all = append(all, c.Close())
	}
	return errors.Join(all...)
}

// sniffed is how many bytes of a file are read to recognise its format.
const sniffed = 64 << 10

func openInput(name string, o *Options) (*input, error) {
	if name == Stdin {
		stdin := o.Stdin
		if stdin == nil {
			stdin = os.Stdin
		}
		return &input{from: bufio.NewReaderSize(stdin, sniffed)}, nil
	}
	open := os.Open
	if o.Regular {
		open = outfile.OpenRegular
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("it is a folder")
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	in := &input{from: bufio.NewReaderSize(file, sniffed), own: []io.Closer{file}}
	if !info.Mode().IsRegular() {
		return in, nil
	}
	in.file, in.size = file, info.Size()
	if head, _ := in.from.Peek(4); snap.Is(head) {
		if err := in.openSnap(); err != nil {
			in.close()
			return nil, err
		}
	}
	return in, nil
}

// openSnap continues with the recording in a file of "goprof snap".
func (in *input) openSnap() error {
	r, err := snap.Read(in.file, in.size)
	if err != nil {
		return err
	}
	part, err := r.File(snap.Recording)
	if none := (*snap.NoPart)(nil); errors.As(err, &none) {
		return &Lacks{Problem: none.Error(), Remedy: "README.txt in it names its parts"}
	} else if err != nil {
		return err
	}
	in.file, in.from, in.own = nil, bufio.NewReaderSize(part, sniffed), append(in.own, part)
	return nil
}

func (in *input) open(name string, o Options) (*File, error) {
	head, packed, err := in.head()
	if err != nil {
		return nil, err
	}
	base := filepath.Base(name)
	switch {
	case isJFR(head):
		if err := in.spool(packed); err != nil {
			return nil, err
		}
		return opened(openJFR(in.file, in.size, base, o))
	case packed && isText(head):
		text, err := unpack(in.from)
		if err != nil {
			return nil, err
		}
		return opened(openCollapsed(text, name))
	case packed || isProto(head):
		return opened(openPProf(in.from, base, o))
	}
	return opened(openCollapsed(in.from, name))
}

func opened[S source](s S, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return &File{source: s}, nil
}

// head returns the beginning of the unpacked content, and whether the file is packed.
func (in *input) head() (head []byte, packed bool, err error) {
	head, err = in.from.Peek(sniffed)
	if err != nil && len(head) == 0 && err != io.EOF {
		return nil, false, err
	}
	if !bytes.HasPrefix(head, []byte{0x1f, 0x8b}) { // gzip
		return head, false, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(head))
	if err != nil {
		return nil, true, nil
	}
	start := make([]byte, 512)
	n, _ := io.ReadFull(z, start)
	return start[:n], true, nil
}

func isJFR(head []byte) bool { return bytes.HasPrefix(head, []byte("FLR\x00")) }

// isProto reports whether a file may be pprof's: it begins with a sample type (profile.proto, field 1), a message of
// some bytes. All known writers begin with it. The field's tag is also a line break, but in a text file no byte like
// the message's length follows.
func isProto(head []byte) bool {
	const sampleType = 1<<3 | 2
	return len(head) > 1 && head[0] == sampleType && head[1] < ' ' && !bytes.ContainsRune([]byte("\t\n\r"), rune(head[1]))
}

func isText(head []byte) bool {
	return len(head) > 0 && !isProto(head) && bytes.IndexFunc(head, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r'
	}) < 0
}

// spool copies the recording into a file, so that it can be read at any offset. It need not do so if the recording is a
// file that is not packed.
func (in *input) spool(packed bool) error {
	if in.file != nil && !packed {
		return nil
	}
	file, size, err := Spool(in.from, packed)
	if err != nil {
		return err
	}
	in.file, in.size, in.own = file, size, append(in.own, file)
	return nil
}
