package requests

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"goprof/output"
)

// Report is the result: the requests to show.
type Report struct {
	All      []Request     // the longest first
	Slow     int           // number of slow requests, at the beginning of All
	By       string        // what a request is: "trace", or the method
	Methods  bool          // By is a method
	Interval time.Duration // between two looks at a thread; with Waits, their mean length
	Duration time.Duration // of the recording
	Left     int64         // samples without room
	Waits    bool          // the samples are waits, each with its own time
}

const mostParts = 6

// Text writes a report for people.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	seen, gap, within := "there is a look each "+round(r.Interval)+", so a shorter one is seen by chance", "look",
		"within "+round(2*r.Interval)
	if r.Waits {
		seen, gap = "only their waits are in the recording", "other wait"
		within = "from its first wait to the end of its last one"
	}
	fmt.Fprintf(&b, "Requests   %d seen in %s, by %s\n           %s\n", len(r.All), round(r.Duration),
		output.Printable(r.By), seen)
	if r.Methods {
		fmt.Fprintf(&b, "           those of a thread with no %s between them count as one\n", gap)
	}
	if r.Left > 0 {
		fmt.Fprintf(&b, "Left out   %d samples: there was no room for them\n", r.Left)
	}
	if r.Slow > 0 {
		fmt.Fprintf(&b, "Slow       %d, from %s to %s, each %s\n", r.Slow, round(r.All[0].For),
			round(r.All[r.Slow-1].For), within)
	}
	for i := range r.All[:r.Slow] {
		one := &r.All[i]
		fmt.Fprintf(&b, "\n%8s  %s", round(one.For), one.From.UTC().Format("15:04:05.000"))
		if one.Trace != "" {
			fmt.Fprintf(&b, "  trace %s", one.Trace)
		}
		fmt.Fprintf(&b, "  %s", output.Printable(one.Thread))
		if one.Threads > 1 {
			fmt.Fprintf(&b, " and %d more", one.Threads-1)
		}
		if one.Cut && !r.Waits {
			b.WriteString("  or longer: under way at the recording's beginning or end")
		}
		b.WriteByte('\n')
		for at, p := range one.Parts {
			if at == mostParts {
				fmt.Fprintf(&b, "          %8s  %d more\n", "", len(one.Parts)-at)
				break
			}
			fmt.Fprintf(&b, "          %8s  %s\n", round(p.For), output.Printable(p.What)+p.heldBy())
		}
		if one.Unseen > 2*r.Interval {
			fmt.Fprintf(&b, "          %8s  %s\n", round(one.Unseen), Unseen)
		}
	}
	if more := Differences(r.All, r.Slow); len(more) > 0 {
		fmt.Fprintf(&b, "\nWhat a slow one spends more in, on average (and one of the other %d)\n", len(r.All)-r.Slow)
		for i, d := range more {
			if i == mostParts {
				break
			}
			fmt.Fprintf(&b, "%8s (%s)  %s\n", round(d.Slow), round(d.Others), output.Printable(d.What))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// round returns a time that is easy to read.
func round(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	default:
		d = d.Round(time.Millisecond)
	}
	return d.String()
}

type reportJSON struct {
	By              string        `json:"by"`
	Seen            int           `json:"seen"`
	IntervalSeconds float64       `json:"interval_seconds,omitempty"`
	DurationSeconds float64       `json:"duration_seconds"`
	LeftOut         int64         `json:"left_out,omitempty"`
	Slow            []requestJSON `json:"slow"`
	More            []moreJSON    `json:"slow_ones_spend_more_in"`
}

type requestJSON struct {
	Trace   string     `json:"trace_id,omitempty"`
	Thread  string     `json:"thread"`
	Threads int        `json:"threads"`
	At      string     `json:"at"`
	Seconds float64    `json:"seconds"`
	Unseen  float64    `json:"unseen_seconds,omitempty"`
	Cut     bool       `json:"may_be_longer,omitempty"`
	Parts   []partJSON `json:"parts"`
}

type partJSON struct {
	What    string       `json:"what"`
	Seconds float64      `json:"seconds"`
	Holders []holderJSON `json:"held_by,omitempty"`
	Peers   []peerJSON   `json:"peers,omitempty"`
}

type holderJSON struct {
	Lock   string `json:"lock"`
	Thread string `json:"thread"`
	Trace  string `json:"trace_id,omitempty"`
	Times  int    `json:"times"`
}

type peerJSON struct {
	Peer  string `json:"peer"`
	Times int    `json:"times"`
}

type moreJSON struct {
	What   string  `json:"what"`
	Slow   float64 `json:"slow_seconds"`
	Others float64 `json:"other_seconds"`
}

// JSON writes a report for programs.
func (r *Report) JSON(w io.Writer) error {
	out := reportJSON{By: r.By, Seen: len(r.All), DurationSeconds: r.Duration.Seconds(), LeftOut: r.Left,
		Slow: []requestJSON{}, More: []moreJSON{}}
	if !r.Waits {
		out.IntervalSeconds = r.Interval.Seconds()
	}
	for i := range r.All[:r.Slow] {
		one := &r.All[i]
		of := requestJSON{Trace: one.Trace, Thread: one.Thread, Threads: one.Threads,
			At: one.From.UTC().Format(time.RFC3339Nano), Seconds: one.For.Seconds(), Unseen: one.Unseen.Seconds(),
			Cut: one.Cut && !r.Waits}
		for _, p := range one.Parts {
			part := partJSON{What: p.What, Seconds: p.For.Seconds()}
			for _, h := range p.Holders {
				if h.Peer != "" {
					part.Peers = append(part.Peers, peerJSON{h.Peer, h.Times})
				} else {
					part.Holders = append(part.Holders, holderJSON{h.Lock, h.Owner.String(), h.Trace, h.Times})
				}
			}
			of.Parts = append(of.Parts, part)
		}
		out.Slow = append(out.Slow, of)
	}
	for _, d := range Differences(r.All, r.Slow) {
		out.More = append(out.More, moreJSON{d.What, d.Slow.Seconds(), d.Others.Seconds()})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}
