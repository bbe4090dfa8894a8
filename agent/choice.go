//go:build linux

package agent

import (
	"fmt"
	"regexp"
	"strings"

	"goprof/diagnose"
)

// Candidate holds the facts by which JVMs are chosen and batches are named. All text comes from the target or its
// container and may hold anything.
type Candidate struct {
	diagnose.JVM
	Cgroup    string
	Namespace string // of its pod, as Kubernetes puts it into the container; empty elsewhere
}

// Choice says which JVMs to record: those that fit a rule of Match and no rule of Deny. Without rules in Match, every
// JVM fits.
type Choice struct{ Match, Deny []Rule }

// Rule is a list of parts. A JVM fits the rule if it fits each part.
type Rule []Part

// Part is the name of a fact and what the fact has to contain.
type Part struct {
	Field string
	Want  *regexp.Regexp
}

// Fields are the facts that a rule may be about.
var Fields = []string{"name", "main", "user", "cgroup", "container", "namespace", "version", "vendor"}

// fact is a fact of a JVM by its name in Fields.
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

// isInside tells facts that are known only once a JVM is attached to.
func isInside(field string) bool { return field == "version" || field == "vendor" }

// fieldLike matches what looks like the name of a fact.
var fieldLike = regexp.MustCompile(`^[A-Za-z]+$`)

// mostPattern bounds a pattern: a rule is a line that a person wrote.
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

// ParseRule reads a rule of the command line. "PATTERN" is a pattern for the JVM's name, "FIELD=PATTERN" one for
// another fact. A pattern for the name that itself begins with a word and "=" must be written "name=...". So a misspelt
// FIELD is an error, and is not mistaken for a pattern that fits no JVM.
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

// Verdict is what a choice says of a JVM.
type Verdict uint8

const (
	Wanted   Verdict = iota
	Unwanted         // whatever the JVM itself will tell
	Unsure           // only what the JVM itself tells decides
)

// Judge says whether a JVM is wanted. inside says that the facts are known that only an attached JVM has.
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

// anyFits is Wanted if a rule fits, Unwanted if none can, otherwise Unsure.
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
