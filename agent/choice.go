//go:build linux

package agent

import (
	"fmt"
	"regexp"
	"strings"

	"goprof/diagnose"
)

// Candidate holds the facts by which JVMs are chosen and batches are named. All of its text comes from the target or
// the target's container, and may hold anything.
type Candidate struct {
	diagnose.JVM
	Cgroup    string
	Namespace string // of its pod, from a file that Kubernetes puts into the container; empty elsewhere
}

// Choice says which JVMs to record: those that fit a rule of Match and no rule of Deny. Without rules in Match, every
// JVM fits.
type Choice struct{ Match, Deny []Rule }

// Rule is a list of parts. A JVM fits the rule if it fits each part.
type Rule []Part

// Part is the name of a fact and a pattern that the fact must match.
type Part struct {
	Field string
	Want  *regexp.Regexp
}

// Fields are the names of the facts that a rule may use.
var Fields = []string{"name", "main", "user", "cgroup", "container", "namespace", "version", "vendor"}

func (j *Candidate) fact(field string) string {
	switch field {
	case "name":
		return j.Name()
	case "main":
		return j.Main
	case "user":
		return j.User
	case "cgroup":
		return j.Cgroup
	case "container":
		return j.Container
	case "namespace":
		return j.Namespace
	case "version":
		return j.Version
	case "vendor":
		return j.Vendor
	}
	return ""
}

// isInside reports whether a fact is known only of an attached JVM.
func isInside(field string) bool { return field == "version" || field == "vendor" }

// fieldLike matches text that could be the name of a fact.
var fieldLike = regexp.MustCompile(`^[A-Za-z]+$`)

// mostPattern limits a pattern: a person wrote the rule on one line.
const mostPattern = 1000

// NewPart makes a part of a rule.
func NewPart(field, pattern string) (Part, error) {
	known := false
	for _, f := range Fields {
		known = known || f == field
	}
	if !known {
		return Part{}, fmt.Errorf("there is no fact %q: there are %s", field, strings.Join(Fields, ", "))
	}
	if len(pattern) > mostPattern {
		return Part{}, fmt.Errorf("a pattern is at most %d bytes long", mostPattern)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return Part{}, fmt.Errorf("%s: %w", field, err)
	}
	return Part{field, re}, nil
}

// ParseRule reads a rule of the command line. "PATTERN" is a pattern for the JVM's name. "FIELD=PATTERN" is one for
// another fact. A pattern for the name that begins with a word and "=" must be written "name=...". So a misspelt FIELD
// is an error, and not a pattern that matches no JVM.
func ParseRule(text string) (Rule, error) {
	field, pattern := "name", text
	if before, after, ok := strings.Cut(text, "="); ok && fieldLike.MatchString(before) {
		field, pattern = before, after
	}
	part, err := NewPart(field, pattern)
	if err != nil {
		return nil, err
	}
	return Rule{part}, nil
}

// Verdict is the result of a choice for one JVM.
type Verdict uint8

const (
	Wanted   Verdict = iota
	Unwanted         // whatever the attached JVM would say
	Unsure           // the answer depends on facts of the attached JVM
)

// Judge decides whether a JVM is wanted. inside says that the JVM is attached, so all facts are known.
func (c *Choice) Judge(j *Candidate, inside bool) Verdict {
	verdict := Wanted
	if len(c.Match) > 0 {
		verdict = anyFits(c.Match, j, inside)
	}
	if verdict == Unwanted {
		return Unwanted
	}
	switch anyFits(c.Deny, j, inside) {
	case Wanted:
		return Unwanted
	case Unsure:
		return Unsure
	}
	return verdict
}

// anyFits returns Wanted if a rule fits, Unwanted if none can, and Unsure otherwise.
func anyFits(rules []Rule, j *Candidate, inside bool) Verdict {
	verdict := Unwanted
	for _, r := range rules {
		switch r.fits(j, inside) {
		case Wanted:
			return Wanted
		case Unsure:
			verdict = Unsure
		}
	}
	return verdict
}

func (r Rule) fits(j *Candidate, inside bool) Verdict {
	verdict := Wanted
	for _, p := range r {
		if isInside(p.Field) && !inside {
			verdict = Unsure
		} else if !p.Want.MatchString(j.fact(p.Field)) {
			return Unwanted
		}
	}
	return verdict
}
