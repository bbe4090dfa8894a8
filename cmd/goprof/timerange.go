package main

import (
	"fmt"
	"strings"
	"time"
)

// timeRange is a part of a recording, relative to its start: 10s-60s, 60s- or -60s.
type timeRange struct {
	from, to time.Duration // 0: the start, the end
	text     string
}

func (r *timeRange) Type() string   { return "string" }
func (r *timeRange) String() string { return r.text }
func (r *timeRange) given() bool    { return r.text != "" }

func (r *timeRange) of(name string) string { return strings.TrimSpace(name + " " + r.text) }

// Set reads a range.
func (r *timeRange) Set(text string) error {
	from, to, is := strings.Cut(text, "-")
	if !is || from == "" && to == "" {
		return fmt.Errorf("%q is no range like 0s-60s, 60s- or -60s", text)
	}
	*r = timeRange{text: text}
	if from != "" && from != "0" && from != "0s" {
		if err := asTime(&r.from).Set(from); err != nil {
			return err
		}
	}
	if to != "" {
		if err := asTime(&r.to).Set(to); err != nil {
			return err
		}
	}
	if r.to > 0 && r.to <= r.from {
		return fmt.Errorf("%q ends before it begins", text)
	}
	return nil
}
