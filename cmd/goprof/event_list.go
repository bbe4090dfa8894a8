//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
)

// askedEvent is one of the events that --event names.
type askedEvent struct {
	name  string
	every uint64 // mean amount between two samples; 0: the event's default
}

// parseEvents reads "alloc=64k,exceptions,libc:write". A comma in the brackets of a C++ name separates nothing. A text
// behind "=" is an amount only if it reads as one: "libjvm:Handle::operator=" is a name.
func parseEvents(text string) (list []askedEvent, err error) {
	for _, part := range splitEvents(text) {
		e := askedEvent{name: part}
		if name, amount, ok := cutLast(part, '='); ok {
			if n, err := parseAmount(amount); err == nil {
				e = askedEvent{name, n}
			}
		}
		if e.name == "" {
			return nil, fmt.Errorf("%q names no event between two commas", text)
		}
		if slices.ContainsFunc(list, func(o askedEvent) bool { return o.name == e.name }) {
			return nil, fmt.Errorf("%s is there twice", e.name)
		}
		list = append(list, e)
	}
	return list, nil
}

func cutLast(text string, at byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(text, at)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

// splitEvents splits at commas outside of brackets. Where brackets do not match ("operator<") all commas split.
func splitEvents(text string) (parts []string) {
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
