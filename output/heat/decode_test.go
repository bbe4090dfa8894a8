package heat

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"goprof/output/flame"
)

// decoded is the samples of a page, decoded as in load.js.
type decoded struct {
	timePage
	stacks  []string // the names of each node's stack, root first
	entries []decodedEntry
}

type decodedEntry struct {
	cell, cells int
	lane, stack string
	whole       string // the stack with all frames; empty if it is the same
	guess       bool
	weight      int64
}

const digits64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

func decode(t testing.TB, html []byte) *decoded {
	t.Helper()
	_, rest, _ := bytes.Cut(html, []byte(`<script id="data" type="application/json">`))
	data, _, _ := bytes.Cut(rest, []byte(`</script>`))
	d := &decoded{}
	if err := json.Unmarshal(data, &d.timePage); err != nil {
		t.Fatal(err)
	}
	d.stacks = stacksOf(t, &d.Graph, unpack(t, d.Nodes))
	b := unpack(t, d.Samples)
	number := func() int {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatal("too few numbers")
		}
		b = b[n:]
		return int(v)
	}
	nodes, whole := make([]int, d.Stacks), make([]string, d.Stacks)
	for i := range nodes {
		nodes[i] = number()
	}
	if d.Whole != nil {
		g := flame.Graph{Names: d.Names, Count: d.Whole.Count}
		stacks := stacksOf(t, &g, unpack(t, d.Whole.Nodes))
		for i := range whole {
			whole[i] = stacks[number()]
		}
	}
	d.entries = make([]decodedEntry, d.Entries)
	cell := 0
	for i := range d.entries {
		cell += number()
		d.entries[i].cell, d.entries[i].cells = cell, 1
	}
	for i := range d.entries {
		if d.Spans {
			d.entries[i].cells = number() + 1
		}
	}
	for i := range d.entries {
		d.entries[i].lane = d.Lanes[number()]
	}
	for i := range d.entries {
		k := number()
		d.entries[i].stack, d.entries[i].whole, d.entries[i].guess = d.stacks[nodes[k]>>1], whole[k], nodes[k]&1 == 1
	}
	for i := range d.entries {
		d.entries[i].weight = int64(number())
	}
	if len(b) > 0 {
		t.Errorf("%d bytes too many", len(b))
	}
	return d
}

func unpack(t testing.TB, text string) []byte {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func stacksOf(t testing.TB, g *flame.Graph, nodes []byte) []string {
	t.Helper()
	names, last := []string{}, ""
	for _, s := range g.Names {
		last = last[:strings.IndexByte(digits64, s[0])] + s[1:]
		names = append(names, last)
	}
	stacks, path := []string{""}, []string{}
	for range g.Count {
		var v [3]int
		for i := range v {
			u, n := binary.Uvarint(nodes)
			v[i], nodes = int(u), nodes[n:]
		}
		path = append(path[:len(path)-v[1]], names[v[0]])
		stacks = append(stacks, strings.Join(path, ";"))
	}
	return stacks
}

// sum adds up the entries with the same key.
func (d *decoded) sum(key func(e *decodedEntry) string) map[string]int64 {
	sums := map[string]int64{}
	for i := range d.entries {
		sums[key(&d.entries[i])] += d.entries[i].weight
	}
	return sums
}
