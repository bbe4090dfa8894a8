package resource

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The bounds of a file of rules.
const (
	maxRuleFile = 1 << 20
	maxRules    = 1000
)

// ReadRules reads rules in the form of Prometheus' relabel_configs, which is a part of YAML:
//
//	# a comment
//	- source_labels: [service_name, host_name]
//	  regex: "shop-(.*);.*"
//	  target_label: shop
//	  replacement: $1
//	  action: replace
//
// Each rule begins with "- ". Each key has a line of its own, with a plain text, a quoted one, or a list in brackets.
// All other YAML is refused. The error has the number of the line.
func ReadRules(from io.Reader) (rules Rules, err error) {
	lines := bufio.NewScanner(io.LimitReader(from, maxRuleFile))
	lines.Buffer(nil, 64<<10)
	number := 0
	for lines.Scan() {
		number++
		if rules, err = rules.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if len(rules) > maxRules {
			return nil, fmt.Errorf("more than %d rules", maxRules)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	for i := range rules {
		if err := rules[i].Check(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return rules, nil
}

func (rules Rules) line(line string) (Rules, error) {
	text := strings.TrimSpace(line)
	if text == "" || text[0] == '#' || text == "relabel_configs:" || text == "---" {
		return rules, nil
	}
	if rest, begins := strings.CutPrefix(text, "- "); begins {
		rules, text = append(rules, Rule{}), strings.TrimSpace(rest)
	}
	if len(rules) == 0 {
		return nil, fmt.Errorf("a rule begins with \"- \": %q", text)
	}
	key, value, ok := strings.Cut(text, ":")
	if !ok {
		return nil, fmt.Errorf("no \"key: value\": %q", text)
	}
	return rules, rules[len(rules)-1].field(strings.TrimSpace(key), strings.TrimSpace(value))
}

func (r *Rule) field(key, value string) (err error) {
	if key == "source_labels" {
		r.Source, err = list(value)
		return err
	}
	text, err := plain(value)
	if err != nil {
		return err
	}
	if r.given == nil {
		r.given = make(map[string]bool)
	}
	r.given[key] = true
	switch key {
	case "separator":
		r.Separator = text
	case "regex":
		r.Regex = text
	case "modulus":
		r.Modulus, err = strconv.ParseUint(text, 10, 64)
	case "target_label":
		r.Target = text
	case "replacement":
		r.Replacement = text
	case "action":
		r.Action = text
	default:
		err = fmt.Errorf("no rule has %q; they have source_labels, separator, regex, modulus, target_label, replacement, "+
			"action", key)
	}
	return err
}

// list reads "[a, b]".
func list(value string) (all []string, err error) {
	inner, ok := strings.CutPrefix(value, "[")
	inner, ok2 := strings.CutSuffix(inner, "]")
	if !ok || !ok2 {
		return nil, fmt.Errorf("no list in brackets: %q", value)
	}
	for part := range strings.SplitSeq(inner, ",") {
		text, err := plain(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if text != "" {
			all = append(all, text)
		}
	}
	return all, nil
}

// plain reads a text with or without quotes.
func plain(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	switch value[0] {
	case '\'':
		if len(value) < 2 || value[len(value)-1] != '\'' {
			return "", fmt.Errorf("a quote is not closed: %s", value)
		}
		return strings.ReplaceAll(value[1:len(value)-1], "''", "'"), nil
	case '"':
		text, err := strconv.Unquote(value)
		if err != nil {
			return "", fmt.Errorf("a quoted text that cannot be read: %s", value)
		}
		return text, nil
	case '|', '>', '&', '*', '!', '{', '[':
		return "", fmt.Errorf("%q is of YAML what goprof does not read: quote the text", value)
	}
	if at := strings.Index(value, " #"); at >= 0 {
		value = strings.TrimSpace(value[:at])
	}
	return value, nil
}
