package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Tool is what a client can call.
type Tool struct {
	Name, Title, What string
	Options           []Option
	// Call does the work within Limit. The model gets an error's text, and may call again.
	Call  func(ctx context.Context, args Args) (string, error)
	Limit func(args Args) time.Duration
}

// Kind is the type of an option's value, by its name in JSON Schema.
type Kind string

const (
	Text    Kind = "string"
	Integer Kind = "integer"
	Switch  Kind = "boolean"
)

// Option is one argument of a tool.
type Option struct {
	Name, What  string
	Kind        Kind
	Needed      bool
	Words       []string // the only valid texts; empty: any text
	Least, Most int      // of an integer; Most of 0: no limit
}

// Args are checked arguments: each is a string, an int or a bool.
type Args map[string]any

func (a Args) Text(name string) string { s, _ := a[name].(string); return s }
func (a Args) Int(name string) int     { n, _ := a[name].(int); return n }
func (a Args) On(name string) bool     { b, _ := a[name].(bool); return b }
func (a Args) Has(name string) bool    { _, ok := a[name]; return ok }

const maxText = 500

// check parses and checks arguments against the tool's options.
func (t *Tool) check(raw json.RawMessage) (Args, error) {
	args, given := Args{}, map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, fmt.Errorf("arguments are no object")
		}
	}
	for name, value := range given {
		i := slices.IndexFunc(t.Options, func(o Option) bool { return o.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s has no argument %.40q; it has %s", t.Name, name, t.names())
		}
		if string(value) == "null" {
			continue
		}
		v, err := t.Options[i].read(value)
		if err != nil {
			return nil, fmt.Errorf("%s %w", name, err)
		}
		args[name] = v
	}
	for _, o := range t.Options {
		if o.Needed && !args.Has(o.Name) {
			return nil, fmt.Errorf("%s needs the argument %s: %s", t.Name, o.Name, o.What)
		}
	}
	return args, nil
}

func (t *Tool) names() string {
	names := []string{}
	for _, o := range t.Options {
		names = append(names, o.Name)
	}
	return strings.Join(names, ", ")
}

func (o *Option) read(value json.RawMessage) (any, error) {
	var text string
	var number int
	var on bool
	switch o.Kind {
	case Text:
		if json.Unmarshal(value, &text) != nil {
			return nil, fmt.Errorf("is a string")
		}
		control := func(r rune) bool { return r < ' ' }
		if len(text) > maxText || !utf8.ValidString(text) || strings.ContainsFunc(text, control) {
			return nil, fmt.Errorf("is one line of %d bytes at most", maxText)
		}
		if len(o.Words) > 0 && !slices.Contains(o.Words, text) {
			return nil, fmt.Errorf("is one of %s", strings.Join(o.Words, ", "))
		}
		return text, nil
	case Integer:
		if json.Unmarshal(value, &number) != nil {
			return nil, fmt.Errorf("is a whole number")
		}
		if o.Most > 0 && (number < o.Least || number > o.Most) {
			return nil, fmt.Errorf("is from %d to %d", o.Least, o.Most)
		}
		return number, nil
	}
	if json.Unmarshal(value, &on) != nil {
		return nil, fmt.Errorf("is true or false")
	}
	return on, nil
}

// schema returns the tool's entry in the list of tools, with its arguments as JSON Schema.
func (t *Tool) schema() map[string]any {
	properties, needed := map[string]any{}, []string{}
	for _, o := range t.Options {
		p := map[string]any{"type": o.Kind, "description": o.What}
		if len(o.Words) > 0 {
			p["enum"] = o.Words
		}
		if o.Most > 0 {
			p["minimum"], p["maximum"] = o.Least, o.Most
		}
		if o.Needed {
			needed = append(needed, o.Name)
		}
		properties[o.Name] = p
	}
	return map[string]any{"name": t.Name, "title": t.Title, "description": t.What,
		"inputSchema": map[string]any{"type": "object", "properties": properties, "required": needed,
			"additionalProperties": false},
		"annotations": map[string]any{"readOnlyHint": true, "openWorldHint": false}}
}
