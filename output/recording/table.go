package recording

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"goprof/output/jfr"
)

// Table counts events of a JFR file by one of their fields.
type Table struct {
	Event   string     `json:"event"`
	By      string     `json:"by"`
	Events  int64      `json:"events"`
	Rows    []TableRow `json:"rows"` // the most frequent first
	Omitted int        `json:"omitted"`
	Notes   []string   `json:"-"` // what a user should know about the file, although it was read
}

type TableRow struct {
	Value    string        `json:"value"`
	Count    int64         `json:"count"`
	Duration time.Duration `json:"duration_ns,omitempty"` // sum of these events
}

// Where is a text that a field of an event must contain.
type Where struct {
	Field string
	Want  *regexp.Regexp
}

// maxValues bounds the values of a table. Events with further values are counted under otherValues.
const (
	maxValues   = 100_000
	otherValues = "[other values]"
	noValue     = "[none]"
	unreadValue = "[not read]" // the event refers to a constant whose text goprof does not read
)

// TableOf counts the events of a name that match all of where.
func TableOf(name, event, by string, where []Where) (*Table, error) {
	in, err := openInput(name, &Options{})
	if err != nil {
		return nil, err
	}
	defer in.close()
	head, packed, err := in.head()
	if err == nil && !isJFR(head) {
		err = &Lacks{Problem: "fields are of events, and only JFR files have events"}
	}
	if err == nil {
		err = in.spool(packed)
	}
	if err != nil {
		return nil, err
	}
	t := &tabler{table: Table{Event: event, By: by, Rows: []TableRow{}}, where: where, rows: map[string]*TableRow{},
		fields: map[string]bool{}}
	if err := t.read(in.file, in.size); err != nil {
		return nil, err
	}
	return t.done()
}

type tabler struct {
	table  Table
	where  []Where
	rows   map[string]*TableRow
	fields map[string]bool // of the event; true: some event has a readable value
	all    map[string]int64
}

func (t *tabler) read(file io.ReaderAt, size int64) error {
	r := jfr.NewReader(file, size, func(name string, _ bool) bool { return name == t.table.Event })
	r.Tally()
	r.AllFields()
	for {
		e, err := r.Next()
		switch {
		case isCutOff(err) && r.Chunks() > 0:
			t.table.Notes = append(t.table.Notes, cutOffNote(err, r.Chunks()))
			fallthrough
		case err == io.EOF:
			t.all = r.Counts()
			return nil
		case err != nil:
			return err
		}
		t.add(e)
	}
}

// add counts an event in its row, if it matches all of where.
func (t *tabler) add(e *jfr.Event) {
	values := make(map[string]string, len(e.Fields))
	for _, f := range e.Fields {
		values[f.Name] = fieldText(&f)
		t.fields[f.Name] = t.fields[f.Name] || f.Form != jfr.UnreadField
	}
	for _, w := range t.where {
		if !w.Want.MatchString(values[w.Field]) {
			return
		}
	}
	t.table.Events++
	value := values[t.table.By]
	row := t.rows[value]
	if row == nil && len(t.rows) >= maxValues {
		value, row = otherValues, t.rows[otherValues]
	}
	if row == nil {
		row = &TableRow{Value: value}
		t.rows[value] = row
	}
	row.Count++
	row.Duration += max(e.Duration, 0)
}

func fieldText(f *jfr.Field) string {
	switch f.Form {
	case jfr.TextField:
		return cmp.Or(f.Text, noValue)
	case jfr.UnreadField:
		return unreadValue
	case jfr.RealField:
		return strconv.FormatFloat(f.Real, 'g', -1, 64)
	}
	return strconv.FormatInt(f.Number, 10)
}

// done sorts the rows. If the event or the field does not exist, the error lists those that exist.
func (t *tabler) done() (*Table, error) {
	if len(t.fields) == 0 {
		return nil, &Lacks{Problem: fmt.Sprintf("it has no event %s; it has %s", t.table.Event,
			someOf(slices.Sorted(maps.Keys(t.all))))}
	}
	names := []string{t.table.By}
	for _, w := range t.where {
		names = append(names, w.Field)
	}
	for _, name := range names {
		read, has := t.fields[name]
		switch all := someOf(slices.Sorted(maps.Keys(t.fields))); {
		case !has:
			return nil, &Lacks{Problem: fmt.Sprintf("%s has no field %s; it has %s", t.table.Event, name, all)}
		case !read:
			return nil, &Lacks{Problem: fmt.Sprintf("%s of %s is not a text or a number; it has %s", name, t.table.Event, all)}
		}
	}
	for _, row := range t.rows {
		t.table.Rows = append(t.table.Rows, *row)
	}
	sort.Slice(t.table.Rows, func(i, j int) bool {
		a, b := &t.table.Rows[i], &t.table.Rows[j]
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value)) < 0
	})
	return &t.table, nil
}

// someOf lists as many names as fit on a line of an error.
func someOf(names []string) string {
	const most = 40
	if len(names) > most {
		names = append(names[:most:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}
