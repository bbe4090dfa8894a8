//go:build linux

package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// AskedEvent is one of the events that --event names.
type AskedEvent struct {
	Name  string
	Every uint64 // mean amount between two samples; 0: the event's default
}

// ParseEvents reads "alloc=64k,exceptions,libc:write". A comma inside the brackets of a C++ name is not a separator. A
// text after "=" is an amount only if it can be read as one: "libjvm:Handle::operator=" is a name.
func ParseEvents(text string) (list []AskedEvent, err error) {
	for _, part := range SplitEvents(text) {
		e := AskedEvent{Name: part}
		if i := strings.LastIndexByte(part, '='); i >= 0 {
			if n, err := ParseAmount(part[i+1:]); err == nil {
				e = AskedEvent{part[:i], n}
			}
		}
		if e.Name == "" {
			return nil, fmt.Errorf("%q names no event between two commas", text)
		}
		if slices.ContainsFunc(list, func(o AskedEvent) bool { return o.Name == e.Name }) {
			return nil, fmt.Errorf("%s is there twice", e.Name)
		}
		list = append(list, e)
	}
	return list, nil
}

// SplitEvents splits at commas outside of brackets. If brackets do not match ("operator<"), it splits at all commas.
func SplitEvents(text string) (parts []string) {
	depth, from := 0, 0
	for i, c := range text {
		switch c {
		case '<', '(':
			depth++
		case '>', ')':
			depth--
		case ',':
			if depth == 0 {
				parts, from = append(parts, text[from:i]), i+1
			}
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 {
		return strings.Split(text, ",")
	}
	return append(parts, text[from:])
}

var units = []struct {
	suffix string
	shift  uint
}{{"k", 10}, {"m", 20}, {"g", 30}}

// maxAmount is the largest interval that the BPF program of a probe can count.
const maxAmount = 1 << 31

// ParseAmount reads a number with k, m or g after it: multiples of 1024.
func ParseAmount(text string) (uint64, error) {
	digits, shift := strings.ToLower(text), uint(0)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(digits, u.suffix); ok {
			digits, shift = rest, u.shift
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n == 0 || n > maxAmount>>shift {
		return 0, fmt.Errorf("%q is no amount between 1 and 2g", text)
	}
	return n << shift, nil
}
