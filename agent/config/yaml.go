//go:build linux

package config

import (
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"

	"goprof/agent"
)

// Read reads the text of a configuration file. Each key is an option, with the same values as its flag. match and deny
// hold a list. An entry is a text as the flags take it, or a rule with several parts: {name: EXPRESSION, user:
// EXPRESSION}.
func Read(c *Config, name string, from io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case len(text) > maxFile:
		return fmt.Errorf("%s: it is larger than %d bytes", name, maxFile)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if doc.Kind == 0 || len(doc.Content) == 0 {
		return nil // empty, or comments only
	}
	if err := readAll(c, doc.Content[0]); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// wrong makes an error with a place in the file.
func wrong(at *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %w", at.Line, fmt.Errorf(format, args...))
}

func readAll(c *Config, top *yaml.Node) error {
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil
	}
	if top.Kind != yaml.MappingNode {
		return wrong(top, "it has to hold keys and values: rate: 19")
	}
	var seen []string
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		o := Find(key.Value)
		switch {
		case o == nil:
			return wrong(key, "there is no option %q", key.Value)
		case slices.Contains(seen, o.Name):
			return wrong(key, "%s is there twice", o.Name)
		}
		seen = append(seen, o.Name)
		if err := readOne(c, o, value); err != nil {
			return err
		}
	}
	return nil
}

func readOne(c *Config, o *Option, value *yaml.Node) error {
	if o.Many {
		return readList(c, o, value)
	}
	text, err := scalar(value)
	if err != nil {
		return err
	}
	if err := o.set(c, text); err != nil {
		return wrong(value, "%s: %w", o.Name, err)
	}
	return nil
}

// scalar returns a plain value. Anchors are refused: a configuration does not need them, and a few lines with anchors
// can expand to a huge document.
func scalar(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", wrong(n, "a single value has to stand here")
	}
	return n.Value, nil
}

func readList(c *Config, o *Option, list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode {
		return wrong(list, "%s is a list: [%s, %[2]s]", o.Name, o.Arg)
	}
	c.forget(o.Name)
	for _, item := range list.Content {
		if item.Kind == yaml.MappingNode && o.Arg == ruleArg {
			rule, err := readRule(item)
			if err != nil {
				return err
			}
			rules := c.rules(o.Name)
			*rules = append(*rules, rule)
			continue
		}
		text, err := scalar(item)
		if err != nil {
			return err
		}
		if err := o.set(c, text); err != nil {
			return wrong(item, "%w", err)
		}
	}
	return nil
}

// readRule reads a rule of several parts: {name: EXPRESSION, user: EXPRESSION}.
func readRule(item *yaml.Node) (rule agent.Rule, err error) {
	for i := 0; i+1 < len(item.Content); i += 2 {
		pattern, err := scalar(item.Content[i+1])
		if err != nil {
			return nil, err
		}
		part, err := agent.NewPart(item.Content[i].Value, pattern)
		if err != nil {
			return nil, wrong(item.Content[i], "%w", err)
		}
		rule = append(rule, part)
	}
	if len(rule) == 0 {
		return nil, wrong(item, "a rule without a part fits everything")
	}
	return rule, nil
}
