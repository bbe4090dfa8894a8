package output

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"goprof/profile"
)

// Figure returns a weight without its unit, in the few digits of a table's column.
func Figure(w profile.Weight, n int64) string {
	switch {
	case w.IsTime():
		return Round(time.Duration(n)).String()
	case w == profile.Bytes:
		return size(n)
	}
	return strconv.FormatInt(n, 10)
}

// Amount returns a weight in words: 1 sample, 1234 samples, 1.23 s of CPU, or 1.23 s of threads' time.
func Amount(w profile.Weight, n int64) string {
	switch w {
	case profile.CPUTime:
		return Span(time.Duration(n)) + " of CPU"
	case profile.WallTime:
		return Span(time.Duration(n)) + " of threads' time"
	case profile.Bytes:
		return size(n) + " allocated"
	}
	if n == 1 {
		return "1 sample"
	}
	return fmt.Sprintf("%d samples", n)
}

// Size returns an amount of memory in words: 312 B, 1.5 MiB.
func Size(n uint64) string { return size(int64(min(n, 1<<62))) }

// size returns an amount of memory in about three digits: 312 B, 1.5 MiB.
func size(n int64) string {
	amount, unit := profile.InUnits(float64(n))
	return fmt.Sprintf("%.4g %s", amount, cmp.Or(unit, "B"))
}

func inWords(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// percentOf returns n divided by of, in percent, with as many digits as are meaningful. It returns 100 % only if n
// equals of. It may return more: goprof may use more than one CPU.
func percentOf[N ~int64](n, of N) string {
	if of <= 0 {
		return "0 %"
	}
	p := 100 * float64(n) / float64(of)
	text := strconv.FormatFloat(p, 'f', 1, 64)
	switch {
	case n == of:
		text = "100"
	case n > of:
		text = strconv.FormatFloat(p, 'f', 0, 64)
	case p >= 99.95: // it would be rounded to 100.0 %
		text = "99.9"
	case n != 0 && p < 0.1:
		text = strconv.FormatFloat(p, 'f', 3, 64)
	}
	return text + " %"
}

func cpus(used, in time.Duration) string {
	if in <= 0 {
		return "-"
	}
	n := float64(used) / float64(in)
	switch {
	case n == 0:
		return "no CPU"
	case n < 0.01:
		return "under 0.01 CPUs"
	case n < 0.095:
		return strconv.FormatFloat(n, 'g', 1, 64) + " CPUs"
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + " CPUs"
}

// Span returns a time in about three digits with its unit: 33.5 s, 0.21 s, 98 µs. It rounds a long time to seconds: 1 h
// 0 min 7 s.
func Span(d time.Duration) string {
	switch {
	case d >= 2*time.Minute:
		return longSpan(int64(d / time.Second))
	case d >= 100*time.Millisecond:
		return digits(d.Seconds()) + " s"
	case d >= 100*time.Microsecond:
		return digits(d.Seconds()*1e3) + " ms"
	case d > 0:
		return digits(d.Seconds()*1e6) + " µs"
	}
	return "0 s"
}

// longSpan writes hours, minutes and seconds, without zeros at the end.
func longSpan(seconds int64) string {
	var parts []string
	if h := seconds / 3600; h > 0 {
		parts = append(parts, Grouped(h)+" h")
	}
	m, s := seconds/60%60, seconds%60
	if m > 0 || s > 0 {
		parts = append(parts, fmt.Sprintf("%d min", m))
	}
	if s > 0 {
		parts = append(parts, fmt.Sprintf("%d s", s))
	}
	return strings.Join(parts, " ")
}

// digits writes three digits, or all before the decimal point.
func digits(v float64) string {
	switch {
	case v >= 99.95:
		return Grouped(int64(v + 0.5))
	case v >= 9.995:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	}
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// Grouped returns a number with commas: 3,330.
func Grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

func share(n, of int64, format string) string {
	if of <= 0 || n == 0 {
		return ""
	}
	return fmt.Sprintf(format, Percent(n, of))
}

// Percent returns a share with as many digits as are meaningful.
func Percent(n, of int64) string {
	if of == 0 {
		return "0%"
	}
	p := float64(n) / float64(of) * 100
	if n != 0 && p < 0.1 {
		return fmt.Sprintf("%.3f%%", p)
	}
	return fmt.Sprintf("%.1f%%", p)
}

// Count returns a number with its noun: "1 thread", "2 threads".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// groupedCount is Count with commas: "3,330 hits".
func groupedCount(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Grouped(n) + " " + what + "s"
}

// Uptime returns a time in two units: 12s, 3m20s, 5h12m, 41d3h.
func Uptime(d time.Duration) string {
	s := int64(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd%dh", s/86400, s%86400/3600)
}

// Round rounds a duration to about three digits.
func Round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/1000 >= unit { // 1000*unit may overflow
		unit *= 10
	}
	return d.Round(unit)
}
