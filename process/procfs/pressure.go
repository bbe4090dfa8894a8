package procfs

import (
	"bytes"
	"strconv"
	"time"
)

// Pressure is how long threads have waited for a resource (Documentation/accounting/psi.rst). Some is the time in which
// at least one thread waited. Full is the time in which all threads waited that were not idle.
type Pressure struct{ Some, Full Stall }

// Stall is a line of Pressure: the shares of the last 10, 60 and 300 seconds, from 0 to 1, and the total time since the
// machine was started.
type Stall struct {
	Avg10, Avg60, Avg300 float64
	Total                time.Duration
}

// ParsePressure reads /proc/pressure/cpu and the other files there, and cpu.pressure of a control group. ok is false
// without a whole line "some". Kernels before 5.13 have no line "full" for CPUs.
func ParsePressure(b []byte) (p Pressure, ok bool) {
	for line := range bytes.Lines(b) {
		kind, rest := cutWord(line)
		s, good := parseStall(rest)
		switch string(kind) {
		case "some":
			p.Some, ok = s, good
		case "full":
			p.Full = s
		}
	}
	if !ok {
		return Pressure{}, false
	}
	return p, true
}

// parseStall reads "avg10=0.12 avg60=0.00 avg300=0.00 total=123". The total is in microseconds.
func parseStall(b []byte) (s Stall, ok bool) {
	for _, f := range []struct {
		key  string
		into *float64
	}{{"avg10=", &s.Avg10}, {"avg60=", &s.Avg60}, {"avg300=", &s.Avg300}} {
		var word []byte
		word, b = cutWord(b)
		if *f.into, ok = percent(bytes.TrimPrefix(word, []byte(f.key))); !ok || !bytes.HasPrefix(word, []byte(f.key)) {
			return Stall{}, false
		}
	}
	word, _ := cutWord(b)
	total, ok := number(bytes.TrimPrefix(word, []byte("total=")))
	if !ok || !bytes.HasPrefix(word, []byte("total=")) {
		return Stall{}, false
	}
	s.Total = Microseconds(total)
	return s, true
}

// percent reads a number from 0 to 100, and returns it divided by 100.
func percent(b []byte) (float64, bool) {
	v, err := strconv.ParseFloat(string(b), 64)
	return v / 100, err == nil && v >= 0 && v <= 100
}

// Microseconds is the length of n microseconds, bounded to about 143 years.
func Microseconds(n uint64) time.Duration { return time.Duration(min(n, 1<<52)) * time.Microsecond }
