package redaction

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"time"

	"goprof/output"
	"goprof/profile/redact"
)

const maxDepth = 64

// rewriteJSON rewrites goprof's own JSON: dumps, locks, triage, reports, summaries. A text is redacted by its key. A
// text under an unknown key is redacted as a sentence, in which only goprof's own words stay.
func rewriteJSON(to io.Writer, from io.Reader, by *redact.Redactor) error {
	d := json.NewDecoder(from)
	d.UseNumber()
	w := &jsonWriter{Writer: bufio.NewWriter(to), d: d, by: by}
	for n := 0; ; n++ {
		err := w.value(nil, nil)
		switch {
		case err == io.EOF && n > 0:
			return w.Flush()
		case err == io.EOF:
			return &output.BadFile{Problem: "it is empty"}
		case err != nil:
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) {
				return &output.BadFile{Problem: "it is no JSON: " + syntaxText(err)}
			}
			return err
		}
		w.WriteByte('\n')
	}
}

// syntaxText describes a fault in the JSON, without text from the file.
func syntaxText(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends too early"
	}
	return "a character that does not belong there"
}

type jsonWriter struct {
	*bufio.Writer
	d  *json.Decoder
	by *redact.Redactor
	// lastName is the last read name: of the frame whose file comes next.
	lastName string
}

// address matches an address as goprof writes it, of code or of an object.
var address = regexp.MustCompile(`^0x[0-9a-f]{1,16}$`)

// value copies the next value. path are the keys that lead to it. token is its beginning, if that was already read.
func (w *jsonWriter) value(path []string, token json.Token) (err error) {
	if len(path) > maxDepth {
		return &output.BadFile{Problem: "JSON of too many levels", TooMuch: true}
	}
	if token == nil {
		if token, err = w.d.Token(); err != nil {
			if err == io.EOF && len(path) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return w.object(path)
		}
		return w.array(path)
	case string:
		return w.text(w.redacted(path, t))
	case json.Number:
		_, err = w.WriteString(t.String())
	case bool:
		_, err = w.WriteString(map[bool]string{false: "false", true: "true"}[t])
	default:
		_, err = w.WriteString("null")
	}
	return err
}

func (w *jsonWriter) object(path []string) error {
	w.WriteByte('{')
	for n := 0; w.d.More(); n++ {
		if n > 0 {
			w.WriteByte(',')
		}
		token, err := w.d.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		if err := w.text(w.key(key)); err != nil {
			return err
		}
		w.WriteByte(':')
		if err := w.value(append(path, key), nil); err != nil {
			return err
		}
	}
	return w.end('}')
}

func (w *jsonWriter) array(path []string) error {
	w.WriteByte('[')
	for n := 0; w.d.More(); n++ {
		if n > 0 {
			w.WriteByte(',')
		}
		if err := w.value(append(path, ""), nil); err != nil {
			return err
		}
	}
	return w.end(']')
}

func (w *jsonWriter) end(with byte) error {
	if _, err := w.d.Token(); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return w.WriteByte(with)
}

func (w *jsonWriter) text(s string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	return err
}

// key redacts a key. The keys of goprof's own formats stay. Others may be foreign text, such as a reason in an account.
func (w *jsonWriter) key(key string) string {
	if knownKeys[key] {
		return key
	}
	return w.by.Text(key)
}

// redacted redacts a text by the last key that leads to it, and by the key around that.
func (w *jsonWriter) redacted(path []string, s string) string {
	last, around := keysOf(path)
	by := w.by
	switch last {
	case "account_of": // the file may be passed on under another name
		return ""
	case "thread":
		return by.Label(s)
	case "name":
		w.lastName = s
		return w.name(around, s)
	case "class":
		return by.Class(s)
	case "file":
		if around == "core" {
			return by.Path(s)
		}
		return by.SourceOf(w.lastName, s)
	case "where":
		return by.Where(s)
	case "code":
		return by.Build(s)
	case "module", "path":
		return by.Path(s)
	case "main_class":
		return by.Program(s)
	case "vm", "version", "jvm", "goprof":
		return by.Version(s)
	case "host":
		return by.Host(s)
	case "pc", "sp", "id", "address":
		if address.MatchString(s) {
			return s
		}
	case "time", "start":
		if _, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return s
		}
	}
	return by.Text(s)
}

// name returns the name of a thread, a frame, or a part of a report.
func (w *jsonWriter) name(around, s string) string {
	switch around {
	case "frames", "carrier":
		return w.by.Label(s)
	case "hottest", "methods", "rows", "states", "packages", "classes":
		return w.by.Label(s)
	case "notes", "signal", "cause", "events":
		return w.by.Text(s)
	}
	return w.by.ThreadName(s)
}

// keysOf returns the last two keys that lead to a value.
func keysOf(path []string) (last, around string) {
	for i := len(path) - 1; i >= 0; i-- {
		switch {
		case path[i] == "":
		case last == "":
			last = path[i]
		default:
			return last, path[i]
		}
	}
	return last, ""
}

// knownKeys are the keys of goprof's own JSON. TestKnownKeys compares them with the types that goprof writes.
var knownKeys = func() map[string]bool {
	keys := make(map[string]bool)
	for key := range strings.FieldsSeq(keysOfOurs) {
		keys[key] = true
	}
	return keys
}()
