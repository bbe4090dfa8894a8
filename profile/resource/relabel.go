package resource

import (
	"cmp"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Rule is one relabel rule in Prometheus' form (relabel_config). Labels are the attributes under LabelName's names:
// service.name is service_name.
type Rule struct {
	Source      []string // source_labels
	Separator   string   // default ";"
	Regex       string   // for the whole text; default "(.*)"
	Modulus     uint64
	Target      string // target_label
	Replacement string // default "$1"
	Action      string // default "replace"

	re    *regexp.Regexp
	given map[string]bool // by key: an empty text may be intended
}

var Actions = []string{"replace", "keep", "drop", "hashmod", "labelmap", "labeldrop", "labelkeep", "lowercase",
	"uppercase", "keepequal", "dropequal"}

// maxRegex bounds a rule's regular expression.
const maxRegex = 4096

// Check fills in defaults, and returns an error if a rule is wrong.
func (r *Rule) Check() error {
	r.Action = cmp.Or(r.Action, "replace")
	if r.Separator == "" && !r.given["separator"] {
		r.Separator = ";"
	}
	if r.Regex == "" && !r.given["regex"] {
		r.Regex = "(.*)"
	}
	if r.Replacement == "" && !r.given["replacement"] {
		r.Replacement = "$1"
	}
	r.Action = strings.ToLower(r.Action)
	withTarget := []string{"replace", "hashmod", "lowercase", "uppercase", "keepequal", "dropequal"}
	switch {
	case !slices.Contains(Actions, r.Action):
		return fmt.Errorf("there is no action %q; there are %s", r.Action, strings.Join(Actions, ", "))
	case slices.Contains(withTarget, r.Action) && r.Target == "":
		return fmt.Errorf("action %s needs target_label", r.Action)
	case r.Action == "hashmod" && r.Modulus == 0:
		return fmt.Errorf("action hashmod needs modulus")
	case len(r.Regex) > maxRegex:
		return fmt.Errorf("regex is longer than %d bytes", maxRegex)
	}
	re, err := regexp.Compile("^(?s:" + r.Regex + ")$")
	if err != nil {
		return fmt.Errorf("regex: %w", err)
	}
	r.re = re
	return nil
}

// Rules are applied one after another.
type Rules []Rule

// Apply changes attributes by the rules. keep is false if a rule drops the process. Names that begin with "__" are for
// rules only, and are removed at the end. All rules must have passed Check.
func (rules Rules) Apply(a Attributes) (changed Attributes, keep bool) {
	if len(rules) == 0 {
		return a, true
	}
	l := labelled{keys: make(map[string]string)}
	for _, one := range a {
		name := LabelName(one.Key)
		if _, known := l.keys[name]; !known { // if two keys have one name, the first counts
			l.keys[name] = one.Key
		}
	}
	l.list = slices.Clone(a)
	for i := range rules {
		if !rules[i].apply(&l) {
			return nil, false
		}
	}
	l.list = slices.DeleteFunc(l.list, func(one Attribute) bool { return strings.HasPrefix(one.Key, "__") })
	return l.list, true
}

// labelled are attributes under their labels' names.
type labelled struct {
	list Attributes
	keys map[string]string // by name
}

func (l *labelled) get(name string) string { return l.list.Get(l.key(name)) }

func (l *labelled) key(name string) string {
	if key, known := l.keys[name]; known {
		return key
	}
	return name
}

// set sets a label, and removes it if the value is empty.
func (l *labelled) set(name, value string) {
	if value == "" {
		l.list.Remove(l.key(name))
		return
	}
	l.list.Set(l.key(name), value)
}

func (r *Rule) apply(l *labelled) (keep bool) {
	var parts []string
	for _, name := range r.Source {
		parts = append(parts, l.get(name))
	}
	text := strings.Join(parts, r.Separator)
	switch r.Action {
	case "keep":
		return r.re.MatchString(text)
	case "drop":
		return !r.re.MatchString(text)
	case "keepequal":
		return text == l.get(r.Target)
	case "dropequal":
		return text != l.get(r.Target)
	case "replace":
		r.replace(l, text)
	case "lowercase":
		l.set(r.Target, strings.ToLower(text))
	case "uppercase":
		l.set(r.Target, strings.ToUpper(text))
	case "hashmod":
		sum := md5.Sum([]byte(text)) // as in Prometheus, so that both choose the same processes
		l.set(r.Target, fmt.Sprint(binary.BigEndian.Uint64(sum[8:])%r.Modulus))
	default:
		r.names(l)
	}
	return true
}

func (r *Rule) replace(l *labelled, text string) {
	at := r.re.FindStringSubmatchIndex(text)
	if at == nil {
		return
	}
	target := string(r.re.ExpandString(nil, r.Target, text, at))
	if target != "" && target == LabelName(target) {
		l.set(target, string(r.re.ExpandString(nil, r.Replacement, text, at)))
	}
}

// names performs an action on the names of labels.
func (r *Rule) names(l *labelled) {
	for _, one := range slices.Clone(l.list) {
		name := LabelName(one.Key)
		matches := r.re.MatchString(name)
		switch {
		case r.Action == "labelmap" && matches:
			l.set(r.re.ReplaceAllString(name, r.Replacement), one.Value())
		case r.Action == "labeldrop" && matches, r.Action == "labelkeep" && !matches:
			l.list.Remove(one.Key)
		}
	}
}
