package output

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"goprof/output/format"
	"goprof/profile"
)

// SummaryPath returns the name of a collapsed file's summary: out.summary.json beside out.collapsed. Other names keep
// their extension, out.txt.summary.json, so that no two recordings share a summary.
func SummaryPath(collapsed string) string {
	return strings.TrimSuffix(collapsed, format.Collapsed.Extension()) + ".summary.json"
}

const maxSummary = 1 << 20

// WriteSummary writes the account of a recording as JSON. The field names are those of profile.Summary and never
// change. Times are in nanoseconds, rates in Hz.
func WriteSummary(to io.Writer, s *profile.Summary) error { return WriteJSON(to, s) }

// ReadSummary reads what WriteSummary wrote.
func ReadSummary(from io.Reader) (*profile.Summary, error) {
	s := new(profile.Summary)
	if err := json.NewDecoder(io.LimitReader(from, maxSummary)).Decode(s); err != nil {
		return nil, fmt.Errorf("not a summary of goprof: %w", err)
	}
	return s, nil
}
