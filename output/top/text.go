package top

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"goprof/output"
)

// Text for a terminal needs an exact number of columns. A line that is wider than the terminal would wrap and move all
// lines below it.

// wide are the runes that take two columns: those that are Wide or Fullwidth in Unicode standard annex 11, by blocks.
var wide = [][2]rune{
	{0x1100, 0x115f}, {0x231a, 0x231b}, {0x2329, 0x232a}, {0x23e9, 0x23f3}, {0x25fd, 0x25fe}, {0x2614, 0x2615},
	{0x2648, 0x2653}, {0x267f, 0x267f}, {0x2693, 0x2693}, {0x26a1, 0x26a1}, {0x26aa, 0x26ab}, {0x26bd, 0x26be},
	{0x26c4, 0x26c5}, {0x26ce, 0x26ce}, {0x26d4, 0x26d4}, {0x26ea, 0x26ea}, {0x26f2, 0x26f5}, {0x26fa, 0x26fd},
	{0x2705, 0x2705}, {0x270a, 0x270b}, {0x2728, 0x2728}, {0x274c, 0x274e}, {0x2753, 0x2757}, {0x2795, 0x2797},
	{0x27b0, 0x27bf}, {0x2b1b, 0x2b1c}, {0x2b50, 0x2b55}, {0x2e80, 0x303e}, {0x3041, 0x33ff}, {0x3400, 0x4dbf},
	{0x4e00, 0x9fff}, {0xa000, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe10, 0xfe19},
	{0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x18cff}, {0x1aff0, 0x1b2ff}, {0x1d300, 0x1d376},
	{0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f1e6, 0x1f320},
	{0x1f32d, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7eb}, {0x1f90c, 0x1f9ff}, {0x1fa70, 0x1faff},
	{0x20000, 0x3fffd},
}

// columns returns the number of columns that a rune takes. Runes that take none are not drawn: see clean.
func columns(r rune) int {
	if r < wide[0][0] {
		return 1
	}
	for _, w := range wide {
		if r >= w[0] && r <= w[1] {
			return 2
		}
	}
	return 1
}

// clean makes text of the target fit for a terminal. It also removes runes without a column of their own, for two
// reasons: terminals draw a rune with such marks differently, and hundreds of marks may follow one letter.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || r >= 0xfe00 && r <= 0xfe0f {
			return -1
		}
		return r
	}, output.Printable(s))
}

// width returns how many columns clean text takes.
func width(s string) (n int) {
	for _, r := range s {
		n += columns(r)
	}
	return n
}

// Cut cuts clean text to n columns. A mark shows that the end was cut off.
func Cut(s string, n int) string { return strings.TrimRight(fit(s, n), " ") }

// fit cuts or fills clean text to exactly n columns. A mark shows that the end was cut off.
func fit(s string, n int) string {
	if n <= 0 {
		return ""
	}
	if w := width(s); w <= n {
		return s + strings.Repeat(" ", n-w)
	}
	var b strings.Builder
	used := 0
	for _, r := range s {
		if used+columns(r) > n-1 {
			break
		}
		b.WriteRune(r)
		used += columns(r)
	}
	b.WriteRune('…')
	return b.String() + strings.Repeat(" ", n-1-used)
}

// fitEnd is fit, but cuts off the beginning: the end of a method's name is more informative.
func fitEnd(s string, n int) string {
	w := width(s)
	if w <= n || n <= 1 {
		return fit(s, n)
	}
	for i, r := range s {
		if w <= n-1 {
			return fit("…"+s[i:], n)
		}
		w -= columns(r)
	}
	return fit("…", n)
}

// percent returns a share of one CPU, or of all samples, in at least four columns.
func percent(x float64) string {
	switch p := 100 * x; {
	case math.IsNaN(p) || p < 0.05:
		return "0"
	case p < 99.95:
		return fmt.Sprintf("%.1f", p)
	default:
		return fmt.Sprintf("%.0f", p)
	}
}

// bytesText returns an amount of bytes in at most six columns.
func bytesText(n float64) string {
	const unit = 1024
	switch {
	case math.IsNaN(n) || n < 1:
		return "0"
	case n < unit:
		return fmt.Sprintf("%.0fB", n)
	}
	for _, suffix := range "KMGTP" {
		if n /= unit; n < 9.995 {
			return fmt.Sprintf("%.1f%c", n, suffix)
		} else if n < unit {
			return fmt.Sprintf("%.0f%c", n, suffix)
		}
	}
	return "much"
}

// short returns a duration with two significant digits.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return output.Uptime(d)
}
