package redact

import (
	"path"
	"regexp"
	"strings"
)

// Text redacts a sentence: goprof's own words and names that the policy allows stay.
func (r *Redactor) Text(text string) string { return r.sentence(text, textWords) }

// sentence is Text with another list of words that stay.
func (r *Redactor) sentence(text string, open map[string]bool) string {
	text = r.hideAddresses(text)
	var b strings.Builder
	from := 0
	for _, at := range names.FindAllStringIndex(text, maxWords) {
		b.WriteString(r.loose(text[from:at[0]], open))
		b.WriteString(r.named(text[at[0]:at[1]], open))
		from = at[1]
	}
	b.WriteString(r.loose(text[from:], open))
	return b.String()
}

// names matches paths and names with dots in a text.
var names = regexp.MustCompile(`(?:~|\.\.?)?/[^\s:;,"'<>()]+|[A-Za-z_][\w$]*(?:[./][\w$<>]+)+`)

// named redacts a path or a qualified name. A text that is certainly neither loses all words that are not allowed.
func (r *Redactor) named(text string, open map[string]bool) string {
	tail := ""
	if end := strings.TrimRight(text, ".,"); end != text {
		text, tail = end, text[len(end):]
	}
	switch {
	case strings.HasPrefix(text, "/proc/"), strings.HasPrefix(text, "/sys/"):
		return r.loose(text, open) + tail
	case strings.ContainsAny(text[:1], "~./"):
		return r.Path(text) + tail
	case r.isOpen(text):
		return r.Method(text) + tail
	case r.library(text), ownOutputs[text]:
		return text + tail
	}
	last := text[strings.LastIndexAny(text, "./")+1:]
	if last != "" && (last[0] >= 'a' && last[0] <= 'z' || last[0] == '<') && hasClass(text[:len(text)-len(last)]) {
		return r.Method(text) + tail
	}
	return r.Class(text) + tail
}

// ownOutputs are the files in the commands that triage proposes. The first is the default file name of "goprof record".
var ownOutputs = setOf("out.collapsed gc.jfr")

// hasClass reports whether a part of a name begins with a capital letter, as classes do.
func hasClass(name string) bool {
	for part := range strings.FieldsFuncSeq(name, func(c rune) bool { return c == '.' || c == '/' }) {
		if part[0] >= 'A' && part[0] <= 'Z' {
			return true
		}
	}
	return false
}

// loose redacts text without names.
func (r *Redactor) loose(text string, open map[string]bool) string {
	return each(text, func(word string, at int) string {
		if r.isPseudonym(word) {
			return word
		}
		if number, is := r.number(word); is && at > 0 && strings.IndexByte(partOfName, text[at-1]) >= 0 {
			return number
		}
		if isFigure(word) || len(word) == 1 && word[0] > ' ' {
			return word
		}
		if r.allowed(strings.ToLower(word), open) || r.allowedThread(word) {
			return word
		}
		return r.hash.of(kindWord, word)
	})
}

// partOfName are the characters before a number that belongs to a name, such as an order or a customer: order-12345678,
// "12345678".
const partOfName = "-\"'@"

// isFigure reports whether a word is a number as in goprof's sentences: up to 12 digits, possibly with a unit.
func isFigure(word string) bool {
	digits := strings.TrimLeft(word, "0123456789")
	n := len(word) - len(digits)
	return n > 0 && n <= 12 && (digits == "" || units[digits])
}

var units = setOf(`s ms us ns m h d B KB MB GB TB KiB MiB GiB k K M G T x th st nd rd Hz`)

// openFolders are folders whose names reveal nothing.
var openFolders = setOf(`/ /usr /lib /lib64 /usr/lib /usr/lib64 /usr/lib/x86_64-linux-gnu /lib/x86_64-linux-gnu
	/usr/lib/aarch64-linux-gnu /lib/aarch64-linux-gnu /tmp /dev/shm /usr/local/lib /opt /var/tmp`)

// Path redacts a file's name with its folders. The folders become one pseudonym. The name of an allowed library stays,
// and so does a name's extension.
func (r *Redactor) Path(name string) string {
	if name == "" || name == "/" {
		return name
	}
	name, deleted := strings.CutSuffix(name, " (deleted)")
	folder, base := path.Split(name)
	var b strings.Builder
	switch clean := strings.TrimRight(folder, "/"); {
	case folder == "":
	case clean == "" || openFolders[clean]:
		b.WriteString(folder)
	default:
		b.WriteString("/" + r.hash.of(kindFile, clean) + "/")
	}
	b.WriteString(r.file(base))
	if deleted {
		b.WriteString(" (deleted)")
	}
	return b.String()
}

// fileEnds are extensions that only show a file's type.
var fileEnds = setOf(`so jar war jfr collapsed html svg json gz pb log txt xml properties conf hprof class java jsa zip`)

func (r *Redactor) file(base string) string {
	if r.library(base) {
		return base
	}
	ends := ""
	for {
		dot := strings.LastIndexByte(base, '.')
		if dot <= 0 || !fileEnds[base[dot+1:]] {
			break
		}
		base, ends = base[:dot], base[dot:]+ends
	}
	kind := byte(kindFile)
	if strings.HasPrefix(ends, ".so") {
		kind = kindLibrary
	}
	return r.part(base, kind, nil) + ends
}

// JVMText redacts a text that should come from the JVM or goprof: the name of a phase, a flag, a reason. It stays if it
// has the form of such a text.
func (r *Redactor) JVMText(text string) string {
	if len(text) > maxOpen || strings.ContainsFunc(text, func(c rune) bool {
		return !isWord(c) && !strings.ContainsRune(" ()-:#.,+/<>=%'", c)
	}) || !isASCII(text) {
		return r.Text(text)
	}
	return text
}

func (r *Redactor) Host(name string) string { return r.host(name) }

// settings matches values of Flight Recorder's settings.
var settings = regexp.MustCompile(`^(?:true|false|everyChunk|endChunk|beginChunk|off|normal|high|max|[0-9.]+ ?(?:ns|us|ms|s|m|h|d)?(?:/s|/m)?|` +
	`enabled|threshold|stackTrace|period|cutoff|throttle|level|interval|infinity)$`)

// Setting redacts the name or the value of a setting of Flight Recorder. Any other text is removed.
func (r *Redactor) Setting(text string) string {
	if settings.MatchString(text) {
		return text
	}
	return ""
}

// Location redacts the location of a module: jrt:/java.base, file:/srv/app.jar.
func (r *Redactor) Location(text string) string {
	if name, ok := strings.CutPrefix(text, "jrt:/"); ok {
		return "jrt:/" + r.Package(name)
	}
	scheme, file, ok := strings.Cut(text, ":/")
	if !ok || scheme != "file" {
		return r.Path(text)
	}
	return "file:" + r.Path("/"+file)
}

func (r *Redactor) Loader(name string) string {
	switch name {
	case "app", "platform", "bootstrap":
		return name
	}
	return r.Class(name)
}

// Build redacts a build id: hexadecimal digits stay.
func (r *Redactor) Build(text string) string {
	if text == "" || isHex(text) {
		return text
	}
	return r.hash.of(kindNumber, text)
}

// OpenLibrary reports whether the policy allows the name of a library.
func (r *Redactor) OpenLibrary(name string) bool { return r.library(name) }

// Native redacts a function of a library, which may be unknown.
func (r *Redactor) Native(name, module string) string {
	switch {
	case strings.HasPrefix(name, "["):
		return r.bracket(name)
	case module != "":
		return r.nativeIn(name, module)
	case isJava(name):
		return r.Method(name)
	}
	return r.native(name)
}

// SourceOf redacts the source file of a class.
func (r *Redactor) SourceOf(class, file string) string { return r.Source(file, r.isOpen(class)) }
