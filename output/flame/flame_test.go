package flame

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goprof/output"
)

func parse(t *testing.T, text string) *output.Tree {
	t.Helper()
	tree, err := output.ParseCollapsed(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func drawPage(t testing.TB, tree *output.Tree, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Page(&b, tree, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// syntheticTree has n nodes, in stacks like those of a server.
func syntheticTree(n int) *output.Tree {
	r := rand.New(rand.NewPCG(11, 12))
	tree := &output.Tree{Nodes: make([]output.TreeNode, 1, n+1)}
	for i := range 5000 {
		tree.Labels = append(tree.Labels, output.Name{
			Text: fmt.Sprintf("com.example.shop.module%d.Service%d.handleRequest%d", i%40, i%700, i),
			Kind: output.LabelKind(i % 6),
		})
	}
	// Each stack leaves the previous one at some depth, which is mostly large.
	var path []int32
	for len(tree.Nodes) <= n {
		keep := 1 - min(r.ExpFloat64()/8, 1)
		path = path[:int(float64(len(path))*keep)]
		for depth := 1 + r.IntN(20); depth > 0 && len(path) < 80 && len(tree.Nodes) <= n; depth-- {
			at := int32(0)
			if len(path) > 0 {
				at = path[len(path)-1]
			}
			path = append(path, int32(len(tree.Nodes)))
			tree.Nodes = append(tree.Nodes, output.TreeNode{Parent: at, Name: int32(r.ExpFloat64()*400) % 5000})
		}
		count := int64(1 + r.IntN(5))
		tree.Nodes[path[len(path)-1]].Self += count
		tree.Total += count
		tree.Stacks++
	}
	return tree
}

// decode is data.js in Go: it returns the stacks of a page, as lines.
func decode(t *testing.T, html []byte) map[string]int64 {
	t.Helper()
	_, rest, _ := bytes.Cut(html, []byte(`<script id="data" type="application/json">`))
	data, _, _ := bytes.Cut(rest, []byte(`</script>`))
	var p page
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	names, last := []string{}, ""
	for _, s := range p.Names {
		last = last[:strings.IndexByte(digits64, s[0])] + s[1:]
		names = append(names, last)
	}
	nodes, err := base64.StdEncoding.DecodeString(p.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	stacks, path := map[string]int64{}, []string{}
	if p.RootSelf > 0 {
		stacks[""] = p.RootSelf
	}
	number := func() int64 {
		v, n := binary.Uvarint(nodes)
		nodes = nodes[n:]
		return int64(v)
	}
	for range p.Count {
		name, up, self := number(), number(), number()
		path = append(path[:len(path)-int(up)], names[name]+"/"+output.LabelKind(p.Kinds[name]-'A').String())
		if self > 0 {
			stacks[strings.Join(path, ";")] += self
		}
	}
	return stacks
}

func TestPageHoldsTheTree(t *testing.T) {
	tree := parse(t, "a;b;c_[j] 3\na;b 2\na;x.Y.z_[1];日本.k_[i] 4\na;日本.q 1\nz 5\na_[j];b 6\n")
	want := map[string]int64{
		"a/native;b/native;c/compiled": 3, "a/native;b/native": 2, "a/native;x.Y.z/c1;日本.k/inlined": 4,
		"a/native;日本.q/native": 1, "z/native": 5, "a/compiled;b/native": 6,
	}
	if d := cmp.Diff(want, decode(t, drawPage(t, tree, Options{}))); d != "" {
		t.Error(d)
	}
}

func TestMinShareKeepsSamples(t *testing.T) {
	tree := parse(t, "a;b;c 1\na;b;d 1\na;e 96\nf 1\ng 1\n")
	want := map[string]int64{"": 2, "a/native;b/native": 2, "a/native;e/native": 96}
	if d := cmp.Diff(want, decode(t, drawPage(t, tree, Options{MinShare: 0.02}))); d != "" {
		t.Error(d)
	}
}

func TestPageOfManyFramesIsSmall(t *testing.T) {
	for _, nodes := range []int{1000, 100_000} {
		tree := syntheticTree(nodes)
		html := drawPage(t, tree, Options{})
		t.Logf("%d frames: %d bytes", nodes, len(html))
		if len(html) > 5_000_000 {
			t.Errorf("%d frames: %d bytes", nodes, len(html))
		}
		var total int64
		for _, n := range decode(t, html) {
			total += n
		}
		if total != tree.Total {
			t.Errorf("%d samples of %d", total, tree.Total)
		}
	}
}

func TestHundredThousandDifferentNames(t *testing.T) {
	var file strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&file, "com.example.company.product.module%d.service.SomeRatherLongClassName%d.handleTheRequest_[j] 1\n",
			i%50, i)
	}
	if html := drawPage(t, parse(t, file.String()), Options{}); len(html) > 5_000_000 {
		t.Errorf("%d bytes", len(html))
	}
}

func TestPageIsSealed(t *testing.T) {
	html := string(drawPage(t, parse(t, "</script><b>_[j] 1\n"), Options{Title: `<b>"'&`}))
	for _, not := range []string{"<b>", "http:", "https:", "@SCRIPT", "@STYLE", "@DATA@", "@TITLE@", "unsafe-inline"} {
		if strings.Contains(strings.ReplaceAll(html, "http://www.w3.org/2000/svg", ""), not) {
			t.Errorf("the page holds %q", not)
		}
	}
	if !strings.Contains(html, "default-src 'none'") || strings.Count(html, "</script>") != 2 {
		t.Error("the page is not closed as it should be")
	}
}

func TestSVG(t *testing.T) {
	var b bytes.Buffer
	tree := parse(t, "<a>&\"';b.C.d_[j];\x01\x1f 700\n<a>&\"';java.util.HashMap.get_[i] 300\n"+
		strings.Repeat("deep;", 100)+"leaf 500\n")
	if err := SVG(&b, tree, Options{Title: "</text><script>"}); err != nil {
		t.Fatal(err)
	}
	var titles []string
	d := xml.NewDecoder(&b)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			switch e.Name.Local {
			case "title":
				var text string
				if err := d.DecodeElement(&text, &e); err != nil {
					t.Fatal(err)
				}
				titles = append(titles, text)
			case "script":
				t.Error("a script")
			}
		}
	}
	if len(titles) != 1+4+101 || titles[1] != `<a>&"' (1000 samples, 66.7%)` || titles[3] != `?? (700 samples, 46.7%)` {
		t.Errorf("%d boxes: %q", len(titles), titles[:5])
	}
}

func TestWriteErrors(t *testing.T) {
	full := errors.New("no space")
	tree := parse(t, "a 1\n")
	for name, draw := range map[string]func(io.Writer, *output.Tree, Options) error{"page": Page, "svg": SVG} {
		if err := draw(failing{full}, tree, Options{}); !errors.Is(err, full) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func BenchmarkPage(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tree := syntheticTree(n)
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				size = len(drawPage(b, tree, Options{}))
			}
			b.ReportMetric(float64(size), "bytes/page")
		})
	}
}

// TestSVGIsSafe: no name can control the viewer of a picture, or a terminal that shows its text.
func TestSVGIsSafe(t *testing.T) {
	tree := parse(t, "a\u202egnp.exe;b\u009b2J;\x1b[31m</title><script>;\ufffe 1\n")
	var b strings.Builder
	if err := SVG(&b, tree, Options{Title: "\u2066<b>\x1b"}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), output.Unsafe) || strings.Contains(line, "<script") ||
			strings.Contains(line, "<b>") {
			t.Errorf("%q", line)
		}
	}
}

// TestPicture: the picture shows what was recorded, and has "1 sample" in the singular. Names lose their package first,
// as in the page.
func TestPicture(t *testing.T) {
	tree := parse(t, "com.example.shop.Checkout.total_[j];std::sort<com::example>(int, int, and more of them) "+
		"1\ncom.example.shop.Checkout.total_[j] 11\n")
	var b strings.Builder
	if err := SVG(&b, tree, Options{Title: "Shop", Line: "cpu mode · 12 samples <now>"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">cpu mode · 12 samples &lt;now&gt;</text>", "more of them) (1 sample, 8.3%)",
		">JVM and native</text>", ">std::sort&lt;co\u2026<"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %s", want, b.String())
		}
	}
	for room, want := range map[int]string{40: "com.example.shop.Checkout.total", 20: "Checkout.total",
		10: "Checkout.\u2026", 3: ""} {
		if got := cut(output.Name{Text: "com.example.shop.Checkout.total", Kind: output.LabelC1}, room); got != want {
			t.Errorf("%d letters: %q, want %q", room, got, want)
		}
	}
}
