package flame

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"goprof/output"
)

// FuzzPictures draws any readable file. A picture is well-formed XML of the elements that goprof writes. A page has
// only its own script.
func FuzzPictures(f *testing.F) {
	f.Add([]byte("java.lang.Thread.run_[j];a.B.c_[i] 5\njava.lang.Thread.run_[j];libc.so.6+0x1f 2\n"), "title")
	f.Add([]byte("<script>alert(1)</script>;\"'&]]>;\xff\ufffe 3\n[t tid=1];[truncated: x];a::b 9007199254740000\n"),
		"</title><script>@SCRIPT@@DATA@")
	f.Add([]byte("a;a;a;a;a;a 1\na 0\nb;a 1\n"), "\x00\x1b")
	f.Fuzz(func(t *testing.T, in []byte, title string) {
		tree, err := output.ParseCollapsed(bytes.NewReader(in))
		if err != nil {
			return
		}
		var b bytes.Buffer
		for _, share := range []float64{0, 0.1} {
			b.Reset()
			if err := SVG(&b, tree, Options{Title: title, MinShare: share}); err != nil {
				t.Fatal(err)
			}
			checkXML(t, b.Bytes())
			b.Reset()
			if err := Page(&b, tree, Options{Title: title, MinShare: share, About: [][2]string{{title, title}}}); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(strings.ToLower(b.String()), "<script"); n != 2 {
				t.Fatalf("%d scripts", n)
			}
		}
	})
}

func checkXML(t *testing.T, b []byte) {
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%v in %q", err, b)
		}
		if e, ok := token.(xml.StartElement); ok {
			switch e.Name.Local {
			case "svg", "g", "rect", "text", "title", "style", "path", "defs", "clipPath":
			default:
				t.Fatalf("an element %q", e.Name.Local)
			}
		}
	}
}
