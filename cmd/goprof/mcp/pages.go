package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Answers are split into pages, so that they do not fill the model's memory. The next page comes from the kept answer:
// the tool is not called again.
const (
	pageLines = 300
	pageBytes = 16_000
	maxKept   = 8
)

var pageOption = Option{Name: "page", Kind: Integer, Least: 1, Most: 1000,
	What: "page of a long answer; the last line of a page says if there is another one"}

// pages holds the last answers that did not fit into one page.
type pages struct{ list []keptAnswer }

type keptAnswer struct{ key, text string }

// keyOf identifies a call, without its page number.
func keyOf(tool string, args Args) string {
	named := Args{"": tool}
	for name, value := range args {
		if name != pageOption.Name {
			named[name] = value
		}
	}
	b, _ := json.Marshal(named) // sorts the names
	return string(b)
}

func (p *pages) get(key string) (string, bool) {
	for i := len(p.list) - 1; i >= 0; i-- {
		if p.list[i].key == key {
			return p.list[i].text, true
		}
	}
	return "", false
}

func (p *pages) keep(key, text string) {
	p.list = append(p.list, keptAnswer{key, text})
	p.list = p.list[max(len(p.list)-maxKept, 0):]
}

// cut returns one page of a text. Its last line says what is missing.
func cut(text string, page int) string {
	text = strings.ToValidUTF8(text, "?")
	from, lines, number := 0, 0, 1
	for at := 0; at < len(text); {
		end := at + len(text[at:])
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if at > from && (lines == pageLines || end-from > pageBytes) {
			if number == page {
				return text[from:at] + more(text, from, at, page)
			}
			from, lines, number = at, 0, number+1
		}
		if end-from > pageBytes { // a single long line
			end = from + pageBytes
			for end > from && text[end]&0xc0 == 0x80 { // inside a character
				end--
			}
		}
		at, lines = end, lines+1
	}
	if number < page {
		return fmt.Sprintf("There is no page %d: the answer has %d.\n", page, number)
	}
	return text[from:]
}

func more(text string, from, to, page int) string {
	first := strings.Count(text[:from], "\n") + 1
	last := first + strings.Count(text[from:to], "\n") - 1
	return fmt.Sprintf("[cut: these are lines %d to %d of %d. The same call with page %d shows more.]\n", first,
		max(last, first), strings.Count(text, "\n")+1, page+1)
}

type errLate time.Duration

func (e errLate) Error() string {
	return fmt.Sprintf("the call took longer than %v, and was ended: ask for less time, or for less", time.Duration(e))
}
