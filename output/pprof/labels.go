package pprof

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	pb "github.com/google/pprof/profile"

	"goprof/profile"
)

const (
	labelThread  = "thread"
	labelTID     = "tid"
	labelVirtual = "virtual"
	labelState   = "state"
	labelTrace   = "trace_id"
	labelSpan    = "span_id"
)

// labels are the labels for a sample's thread. Empty texts and zeros are not written.
type labels struct {
	thread  string
	tid     int
	virtual string // the name of the virtual thread that ran, or its number
	state   string
	link    profile.Link
}

func (b *Builder) labels(s *profile.Sample) (l labels) {
	t := &s.Thread
	l.thread, l.tid, l.link = cmp.Or(t.JavaName, t.Name), t.TID, s.Link
	if t.Virtual {
		l.thread, l.virtual = t.Name, t.JavaName
		if l.virtual == "" {
			l.virtual = fmt.Sprintf("#%d", t.JavaID)
		}
	}
	if b.o.States && !s.NoState {
		l.state = s.State.String()
	}
	return l
}

func (l *labels) written() (texts map[string][]string, numbers map[string][]int64) {
	texts = make(map[string][]string)
	for name, value := range map[string]string{labelThread: l.thread, labelVirtual: l.virtual, labelState: l.state,
		labelTrace: l.link.TraceID(), labelSpan: l.link.SpanID()} {
		if value != "" {
			texts[name] = []string{value}
		}
	}
	if l.tid != 0 {
		numbers = map[string][]int64{labelTID: {int64(l.tid)}}
	}
	return texts, numbers
}

func readLabels(to *profile.Sample, from *pb.Sample) {
	t := &to.Thread
	t.JavaName = first(from.Label[labelThread])
	if ids := from.NumLabel[labelTID]; len(ids) > 0 {
		t.TID = int(ids[0])
	}
	if virtual := first(from.Label[labelVirtual]); virtual != "" {
		t.Virtual, t.Name, t.JavaName = true, t.JavaName, virtual
		if id, err := strconv.ParseInt(strings.TrimPrefix(virtual, "#"), 10, 64); err == nil && id > 0 {
			t.JavaName, t.JavaID = "", id
		}
	}
	state, err := profile.ParseState(first(from.Label[labelState]))
	to.State, to.NoState = state, err != nil
	to.Link = profile.ParseLink(first(from.Label[labelTrace]), first(from.Label[labelSpan]))
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
