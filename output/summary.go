package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"goprof/output/format"
	"goprof/profile"
)

// SummaryPath is where the summary of a collapsed file is looked for: out.summary.json beside out.collapsed. Other
// names keep their extension, out.txt.summary.json, so that no two recordings share a summary.
func SummaryPath(collapsed string) string {
	return strings.TrimSuffix(collapsed, format.Collapsed.Extension()) + ".summary.json"
}

// OpenRegular opens a file to read it, if it is a regular one. It follows no link, and a pipe does not hold it up.
func OpenRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errors.New("it is a symbolic link")
	}
	if err != nil {
		return nil, plain(err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// maxSummary bounds what ReadSummary reads.
const maxSummary = 1 << 20

// WriteSummary writes the account of a recording as JSON. The field names are those of
// profile.Summary and stay as they are; times are nanoseconds, rates are in Hz.
func WriteSummary(to io.Writer, s *profile.Summary) error { return WriteJSON(to, s) }

// ReadSummary reads what WriteSummary wrote.
func ReadSummary(from io.Reader) (*profile.Summary, error) {
	s := new(profile.Summary)
	if err := json.NewDecoder(io.LimitReader(from, maxSummary)).Decode(s); err != nil {
		return nil, fmt.Errorf("not a summary of goprof: %w", err)
	}
	return s, nil
}

func share(n, of int64, format string) string {
	if of <= 0 || n == 0 {
		return ""
	}
	return fmt.Sprintf(format, Percent(n, of))
}

// Percent is a share with as many digits as tell something.
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

// Count is a number of things: "1 thread", "2 threads".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Uptime is two units long: 12s, 3m20s, 5h12m, 41d3h.
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

// Round leaves about three digits of a duration.
func Round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/1000 >= unit { // not d >= 1000*unit, which may be too large for a number
		unit *= 10
	}
	return d.Round(unit)
}
