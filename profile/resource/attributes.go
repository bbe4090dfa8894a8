// Package resource holds the attributes of the process that a profile belongs to, of its container and its host, under
// the names of OpenTelemetry's conventions.
//
// Code that reads /proc or memory makes Attributes, and code that ships profiles writes them. Texts may come from the
// target: Set bounds them, and removes what backends refuse.
package resource

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The attributes that goprof sets, by their names in OpenTelemetry's conventions.
const (
	ServiceName       = "service.name"
	ServiceNamespace  = "service.namespace"
	ServiceVersion    = "service.version"
	ServiceInstance   = "service.instance.id"
	ProcessPID        = "process.pid"
	ProcessExecutable = "process.executable.name"
	ProcessStarted    = "process.creation.time"
	ProcessOwner      = "process.owner"
	RuntimeName       = "process.runtime.name"
	RuntimeVersion    = "process.runtime.version"
	RuntimeAbout      = "process.runtime.description"
	ContainerID       = "container.id"
	PodUID            = "k8s.pod.uid"
	PodName           = "k8s.pod.name"
	PodNamespace      = "k8s.namespace.name"
	PodContainer      = "k8s.container.name"
	Deployment        = "k8s.deployment.name"
	NodeName          = "k8s.node.name"
	HostName          = "host.name"
	HostArch          = "host.arch"
	HostID            = "host.id"
	OSType            = "os.type"
)

// The bounds of one process's attributes.
const (
	MaxAttributes = 128
	MaxKey        = 256  // bytes
	MaxText       = 4096 // bytes
	// OwnRoom is how many of MaxAttributes are reserved for goprof's own facts.
	OwnRoom = 16
)

// Attribute is a name and its value: a text or a number.
type Attribute struct {
	Key    string
	Text   string
	Number int64
	IsInt  bool
}

// Value returns the attribute's value as a text.
func (a *Attribute) Value() string {
	if a.IsInt {
		return strconv.FormatInt(a.Number, 10)
	}
	return a.Text
}

// Attributes are sorted by key, and each key occurs once.
type Attributes []Attribute

// Set adds or replaces a text. It adds nothing if the key or the text is empty, or if there is no room.
func (a *Attributes) Set(key, text string) {
	if text = Clean(text, MaxText); text != "" {
		a.put(Attribute{Key: key, Text: text})
	}
}

// SetInt adds or replaces a number.
func (a *Attributes) SetInt(key string, n int64) {
	a.put(Attribute{Key: key, Number: n, IsInt: true})
}

// Add adds the attributes of another list whose keys are not there yet.
func (a *Attributes) Add(more Attributes) {
	for _, m := range more {
		if _, known := a.find(m.Key); !known {
			a.put(m)
		}
	}
}

// AddWord is Add for what a process says about itself. It leaves OwnRoom free, so that no process can hide where it
// runs.
func (a *Attributes) AddWord(more Attributes) {
	for _, m := range more {
		if _, known := a.find(m.Key); !known && len(*a) < MaxAttributes-OwnRoom {
			a.put(m)
		}
	}
}

// Get returns a value as a text. It is empty if there is none.
func (a Attributes) Get(key string) string {
	if i, ok := a.find(key); ok {
		return a[i].Value()
	}
	return ""
}

func (a *Attributes) Remove(key string) {
	if i, ok := a.find(key); ok {
		*a = slices.Delete(*a, i, i+1)
	}
}

func (a Attributes) find(key string) (int, bool) {
	return slices.BinarySearchFunc(a, key, func(one Attribute, key string) int { return cmp.Compare(one.Key, key) })
}

func (a *Attributes) put(one Attribute) {
	if one.Key = Clean(one.Key, MaxKey); one.Key == "" {
		return
	}
	i, known := a.find(one.Key)
	switch {
	case known:
		(*a)[i] = one
	case len(*a) < MaxAttributes:
		*a = slices.Insert(*a, i, one)
	}
}

// Clean removes control characters and bytes that are not UTF-8, and cuts the text to limit bytes. Protobuf's strings
// must be UTF-8: otherwise a backend refuses the whole message.
func Clean(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit]
		for range utf8.UTFMax - 1 { // the cut may have split a rune
			if r, n := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || n != 1 {
				break
			}
			text = text[:len(text)-1]
		}
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}
