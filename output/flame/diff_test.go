package flame

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"goprof/output"
)

// compared returns the shop's tree, compared with an earlier one: selling took less time then, an old method has gone,
// and a fresh one is new.
func compared(t *testing.T) (*output.Tree, Options) {
	t.Helper()
	tree := parse(t, "Shop.main_[0];Shop.sell_[1];Basket.total_[j] 600\nShop.main_[0];Shop.log_[1] 301\n"+
		"Shop.main_[0];Shop.fresh_[1] 99\nShop.main_[0];Shop.old_[1] 0\n")
	before := map[string]int64{"Basket.total": 400, "Shop.log": 300, "Shop.old": 300}
	n := len(tree.Nodes)
	d := &Diff{Was: make([]int64, n), Told: make([]Told, n), Noise: make([]float64, n)}
	for n := 1; n < len(tree.Nodes); n++ {
		name := tree.Labels[tree.Nodes[n].Name].Text
		d.Was[n] = before[name]
		d.Told[n] = Significant
		if name == "Shop.log" || name == "Shop.main" {
			d.Told[n], d.Noise[n] = WithinNoise, 4.25
		}
	}
	return tree, Options{Title: "before → after", Line: "4 changes are significant", Diff: d}
}

func TestDiffPage(t *testing.T) {
	tree, o := compared(t)
	b := open(t, tree, o, "")
	b.Expect("samples 1000; frames 6; ", "drawn 6 boxes, 4 rows", "view flame light")
	if got := b.Text("legend"); got != "more than beforelessnewgonewithin noise" {
		t.Errorf("legend %q", got)
	}
	tell := func(name string) string {
		t.Helper()
		b.Search("^" + name + "$")
		b.Press(kb.Enter)
		text := b.Text("figures")
		b.Press(kb.Escape)
		return text
	}
	for name, want := range map[string]string{
		"Basket.total": "40.00% → 60.00%, +20.00 points, significant; 600 samples",
		"Shop.log":     "30.00% → 30.10%, +0.10 points, noise alone gives up to 4.25; 301 samples",
		"Shop.fresh":   "0.00% → 9.90%, +9.90 points, new, significant; 99 samples",
		"Shop.main":    "100.00% → 100.00%, +0.00 points, noise alone gives up to 4.25; gone below it: 30.00%; 1,000 samples",
	} {
		if got := tell(name); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	b.Screenshot("diff")
	b.Press("t")
	if got := b.Text("callHead"); got != "afterchangeframe" {
		t.Errorf("the call tree has %q", got)
	}
	b.Press("t")
	b.Press("b")
	b.Expect("samples 1000; frames 6; ", "view flame before light", "drawn 6 boxes")
	if got := tell("Shop.old"); !strings.Contains(got, "30.00% → 0.00%, −30.00 points, gone, significant") {
		t.Errorf("%q", got)
	}
	b.Screenshot("diff-before")
	b.Press("r") // the callers of the method that is gone
	b.Expect("view reverse flame before")
	if got := tell("Shop.old"); !strings.Contains(got, "30.00% → 0.00%, −30.00 points, gone; 300 samples") {
		t.Errorf("reverse: %q", got)
	}
	b.Press("f", "b")
	b.Expect("view reverse flame folded light")
	if got := tell("Basket.total"); !strings.Contains(got, "40.00% → 60.00%, +20.00 points; 600 samples") {
		t.Errorf("folded: %q", got)
	}
}

// TestDiffColours: on the canvas, more is red, less is blue and noise is grey.
func TestDiffColours(t *testing.T) {
	tree, o := compared(t)
	b := open(t, tree, o, "#light")
	// The row of Shop's methods is fresh, log, sell, from left to right.
	pixel := func(share float64) []int {
		return eval[[]int](b, `(() => { const c = document.getElementById('canvas'), copy = document.createElement('canvas');
			copy.width = copy.height = 1;
			const g = copy.getContext('2d', {willReadFrequently: true});
			g.drawImage(c, -Math.round(c.width * `+fmt.Sprint(share)+`), -(c.height - 2 * 18 - 4));
			return [...g.getImageData(0, 0, 1, 1).data]; })()`)
	}
	log := pixel(0.25)
	if log[0] != log[1] || log[1] != log[2] {
		t.Errorf("noise is %v, not grey", log)
	}
	if sell := pixel(0.9); sell[0] < sell[2]+50 {
		t.Errorf("more is %v, not red", sell)
	}
	b.Press("b")
	b.Expect("before")
	if old := pixel(0.4); old[2] < old[1]+20 { // the row is log, old, sell
		t.Errorf("gone is %v", old)
	}
}

// TestDiffPale: a change that is not proven is pale. It is not grey, and paler than a proven change.
func TestDiffPale(t *testing.T) {
	tree, o := compared(t)
	sat := func(how Told) int { // the colour's saturation, for Basket.total's frame
		for n := range tree.Nodes {
			if n > 0 && tree.Labels[tree.Nodes[n].Name].Text == "Basket.total" {
				o.Diff.Told[n] = how
			}
		}
		b := open(t, tree, o, "#light")
		if pale := strings.Contains(b.Text("legend"), "pale: not proven"); pale != how.Pale() {
			t.Errorf("%d: pale is in the legend: %v", how, pale)
		}
		return eval[int](b, `(() => { const c = document.getElementById('canvas'), copy = document.createElement('canvas');
			copy.width = copy.height = 1;
			const g = copy.getContext('2d', {willReadFrequently: true});
			g.drawImage(c, -Math.round(c.width * 0.9), -(c.height - 3 * 18 - 4));
			const d = g.getImageData(0, 0, 1, 1).data;
			return Math.max(d[0], d[1], d[2]) - Math.min(d[0], d[1], d[2]); })()`)
	}
	noise, pale, strong := sat(WithinNoise), sat(Perhaps), sat(Significant)
	if noise != 0 || pale < 15 || strong < 2*pale {
		t.Errorf("colours are %d, %d and %d strong", noise, pale, strong)
	}
}

// A page without a comparison shows no parts of one.
func TestNoDiff(t *testing.T) {
	b := open(t, shop(t), Options{}, "#before")
	b.Press("b")
	b.Expect("view flame light")
	if !eval[bool](b, "document.getElementById('before').hidden") {
		t.Error("there is a button for it")
	}
}

func TestDiffSVG(t *testing.T) {
	tree, o := compared(t)
	var out bytes.Buffer
	if err := SVG(&out, tree, o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<title>Basket.total (600 samples, 60.0%; before 40.00%, +20.00 points, significant)</title>",
		"<title>Shop.log (301 samples, 30.1%; before 30.00%, +0.10 points, noise alone gives up to 4.25)</title>",
		"+9.90 points, significant, new)", "within noise", `fill="#dcdcdc"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "Shop.old") {
		t.Error("what is gone has a box in the shape of what is there")
	}
	for d := xml.NewDecoder(&out); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
