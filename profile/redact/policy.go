package redact

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// Policy is what stays readable. The zero value allows only the shape of names.
type Policy struct {
	// Packages are the packages whose names stay, with everything below them.
	Packages []string
	// Denied are packages below Packages whose names do not stay: org.apache.jsp contains pages of the application.
	Denied []string
	// Libraries are patterns (path.Match) of files of native code. Names and functions of these files stay.
	Libraries []string
	// Words stay in all texts. They are in lower case.
	Words []string
	// KeyFile is the file of the key. It is empty if the policy has none.
	KeyFile string
}

// Default returns the policy without a file.
func Default() *Policy {
	return &Policy{Packages: slices.Clone(openPackages), Denied: slices.Clone(deniedPackages),
		Libraries: slices.Clone(openLibraries)}
}

// Bounds of a policy's file.
const (
	maxPolicyLines = 10_000
	maxPolicyLine  = 1 << 10
)

// ParsePolicy reads a policy with one rule in each line. '#' begins a comment.
//
//	allow package com.example.oss
//	deny package org.apache.custom
//	allow library libnetty_*.so
//	allow word checkout
//	defaults off
//	key case.key
//
// "defaults off" must come before all other rules. It removes goprof's built-in lists.
func ParsePolicy(from io.Reader) (*Policy, error) {
	p := Default()
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, maxPolicyLine), maxPolicyLine)
	rules := 0
	for n := 1; lines.Scan(); n++ {
		if n > maxPolicyLines {
			return nil, fmt.Errorf("more than %d lines", maxPolicyLines)
		}
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if err := p.rule(words, rules); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		rules++
	}
	return p, lines.Err()
}

func (p *Policy) rule(words []string, before int) error {
	last := words[len(words)-1]
	switch head := strings.Join(words[:len(words)-1], " "); head {
	case "allow package":
		return addPackage(&p.Packages, last)
	case "deny package":
		return addPackage(&p.Denied, last)
	case "allow library":
		if _, err := path.Match(last, ""); err != nil || strings.Contains(last, "/") {
			return fmt.Errorf("%q is no pattern of a file's name", last)
		}
		p.Libraries = append(p.Libraries, last)
	case "allow word":
		p.Words = append(p.Words, strings.ToLower(last))
	case "key":
		p.KeyFile = last
	case "defaults":
		if last != "off" {
			return fmt.Errorf("defaults can be off, not %q", last)
		}
		if before > 0 {
			return fmt.Errorf("\"defaults off\" must be the first rule")
		}
		*p = Policy{KeyFile: p.KeyFile}
	default:
		return fmt.Errorf("there is no rule %q: allow package, deny package, allow library, allow word, defaults "+
			"off, key",
			strings.Join(words, " "))
	}
	return nil
}

func addPackage(to *[]string, name string) error {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".*"), ".")
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isWord(r) && r != '.' }) {
		return fmt.Errorf("%q is no package", name)
	}
	*to = append(*to, name)
	return nil
}
