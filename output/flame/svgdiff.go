package flame

import (
	"fmt"
	"math"
)

// The colours of diff.js, for a light background. The hue shows the direction of a change, and the strength its
// percentage points.
const (
	svgMore  = 6
	svgLess  = 214
	svgFresh = 32
	svgNoise = "#dcdcdc"
)

// change returns a node's shares of all samples before and after, in percent.
func (d *drawing) change(n int32) (before, after float64) {
	return share(d.was[n], d.was[0]), share(d.totals[n], d.totals[0])
}

func share(n, of int64) float64 { return 100 * float64(n) / float64(max(of, 1)) }

func (d *drawing) changeFill(n int32) string {
	before, after := d.change(n)
	pale := d.diff.Told[n].Pale()
	switch {
	case d.diff.Told[n] == WithinNoise || before == after:
		return svgNoise
	case before == 0:
		return shade(svgFresh, after, pale)
	case after > before:
		return shade(svgMore, after-before, pale)
	}
	return shade(svgLess, before-after, pale)
}

func shade(hue int, points float64, pale bool) string {
	strength := min(1, math.Sqrt(points/5))
	if pale {
		strength *= 0.4
	}
	return fmt.Sprintf("hsl(%d,%.0f%%,%.0f%%)", hue, 35+55*strength, 88-28*strength)
}

// changeText returns the text about a node's change. It is empty without a comparison.
func (d *drawing) changeText(n int32) string {
	if d.diff == nil {
		return ""
	}
	before, after := d.change(n)
	text := fmt.Sprintf("; before %.2f%%, %+.2f points", before, after-before)
	switch {
	case d.diff.Told[n] == Significant:
		text += ", significant"
	case d.diff.Told[n] == Likely:
		text += ", likely"
	}
	if told := d.diff.Told[n]; d.diff.Noise[n] > 0 && (told == WithinNoise || told == Likely) {
		text += fmt.Sprintf(", "+d.diff.noiseWord()+" %.2f", d.diff.Noise[n])
	}
	if before == 0 {
		text += ", new"
	}
	return text
}

func (d *Diff) noiseWord() string {
	if d.Usual {
		return "two starts usually differ by up to"
	}
	return "noise alone gives up to"
}

func (d *drawing) changeLegend(x, y int) {
	for _, l := range []struct{ text, fill string }{
		{"more than before", shade(svgMore, 3, false)}, {"less", shade(svgLess, 3, false)},
		{"new", shade(svgFresh, 3, false)}, {"pale: not proven", shade(svgMore, 5, true)}, {"within noise", svgNoise},
	} {
		fmt.Fprintf(d.w, `<rect x="%d" y="%d" width="11" height="11" fill="%s"/>`+
			`<text x="%d" y="%d" font-family="sans-serif">%s</text>`+"\n",
			x, y, l.fill, x+16, y+10, l.text)
		x += 40 + 7*len(l.text)
	}
}
