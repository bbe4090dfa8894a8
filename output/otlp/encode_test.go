package otlp

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/profiles/v1development"
	profiles "go.opentelemetry.io/proto/slim/otlp/profiles/v1development"

	"goprof/profile"
	"goprof/profile/batch"
	"goprof/testdata/shipped"
)

func encoded(t *testing.T, samples []*profile.Sample, o batch.GatherOptions) *collector.ExportProfilesServiceRequest {
	t.Helper()
	r := shipped.ParseOTLP(t, Encode(shipped.Batch(samples, o)))
	valid(t, r)
	return r
}

// TestSameAsCollapsed: OpenTelemetry's own code decodes our bytes. The stacks and counts are those of our collapsed
// text.
func TestSameAsCollapsed(t *testing.T) {
	for _, wall := range []bool{false, true} {
		samples := shipped.Samples(400, wall)
		r := encoded(t, samples, batch.GatherOptions{})
		shipped.Same(t, "samples", shipped.OTLP(t, r, "samples"), shipped.Collapsed(t, samples, profile.Samples))
		second, weight := "cpu", profile.CPUTime
		if wall {
			second, weight = "wall", profile.WallTime
		}
		shipped.Same(t, second, shipped.OTLP(t, r, second), shipped.Collapsed(t, samples, weight))
	}
}

// TestCountsWithoutTimes: looks without times of their own are summed up. So are samples that stand for many looks.
func TestCountsWithoutTimes(t *testing.T) {
	for name, change := range map[string]func(*profile.Sample){
		"no time":    func(s *profile.Sample) { s.At = profile.Instant{} },
		"many looks": func(s *profile.Sample) { s.Count = 1000 },
		"some looks": func(s *profile.Sample) { s.Count = 3 },
	} {
		samples := shipped.Samples(100, false)
		change(samples[7])
		r := encoded(t, samples, batch.GatherOptions{})
		shipped.Same(t, name, shipped.OTLP(t, r, "samples"), shipped.Collapsed(t, samples, profile.Samples))
		times := len(r.ResourceProfiles[0].ScopeProfiles[0].Profiles[0].Samples[0].TimestampsUnixNano)
		if (times > 0) != (name == "some looks") {
			t.Errorf("%s: %d times", name, times)
		}
	}
}

// TestFields: resource, scope, period, times, threads and images are in the fields of the definition.
func TestFields(t *testing.T) {
	r := encoded(t, shipped.Samples(50, true), batch.GatherOptions{Pools: true})
	of := r.ResourceProfiles[0]
	told := make(map[string]string)
	for _, a := range of.Resource.Attributes {
		told[a.Key] = strings.ReplaceAll(a.Value.String(), "  ", " ")
	}
	if told["service.name"] != `string_value:"shop"` || told["process.pid"] != "int_value:4711" {
		t.Errorf("%v", told)
	}
	scope := of.ScopeProfiles[0]
	if scope.Scope.Name != "goprof" || scope.Scope.Version != "1.2.3" {
		t.Errorf("%v", scope.Scope)
	}
	p, d := scope.Profiles[0], r.Dictionary
	if p.Period != int64(shipped.Interval) || d.StringTable[p.PeriodType.TypeStrindex] != "wall" ||
		p.TimeUnixNano != uint64(shipped.Start) || p.DurationNano != uint64(50*shipped.Interval) {
		t.Errorf("%v %v", p.Period, p.TimeUnixNano)
	}
	attributes := make(map[string]int)
	for _, s := range p.Samples {
		for _, i := range s.AttributeIndices {
			a := d.AttributeTable[i]
			attributes[d.StringTable[a.KeyStrindex]+" "+strings.ReplaceAll(a.Value.String(), "  ", " ")]++
		}
	}
	for _, want := range []string{`thread.name string_value:"pool-1-thread-*"`, "jvm.thread.virtual bool_value:true",
		`thread.state string_value:"running"`, `thread.name string_value:"GC Thread#*"`} {
		if attributes[want] == 0 {
			t.Errorf("no %s in %q", want, slices.Sorted(maps.Keys(attributes)))
		}
	}
	image := d.MappingTable[1]
	build := d.AttributeTable[image.AttributeIndices[0]]
	if d.StringTable[image.FilenameStrindex] != shipped.LibC || build.Value.GetStringValue() != shipped.LibCBuild ||
		d.StringTable[build.KeyStrindex] != "process.executable.build_id.gnu" {
		t.Errorf("%v %v", image, build)
	}
}

// TestProfileID: the same batch always has the same ids, and no other profile has them.
func TestProfileID(t *testing.T) {
	seen := map[string]bool{}
	for _, samples := range [][]*profile.Sample{shipped.Samples(40, false), shipped.Samples(41, false)} {
		batch := shipped.Batch(samples, batch.GatherOptions{})
		first, again := Encode(batch), Encode(batch)
		if !slices.Equal(first, again) {
			t.Error("a batch has other bytes when it is sent again")
		}
		for _, p := range shipped.ParseOTLP(t, first).ResourceProfiles[0].ScopeProfiles[0].Profiles {
			id := string(p.ProfileId)
			if len(id) != 16 || seen[id] {
				t.Errorf("profile_id %x", id)
			}
			seen[id] = true
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d ids of 4 profiles", len(seen))
	}
}

// TestOneSampleOfAll: stacks that only differ by a bytecode index are one sample, as the definition demands.
func TestOneSampleOfAll(t *testing.T) {
	samples := shipped.Samples(400, false)
	for i, s := range samples {
		stack := *s.Stack
		stack.Frames = slices.Clone(stack.Frames)
		stack.Frames[0].BCI = int32(i)
		s.Stack = &stack
	}
	r := encoded(t, samples, batch.GatherOptions{})
	shipped.Same(t, "samples", shipped.OTLP(t, r, "samples"), shipped.Collapsed(t, samples, profile.Samples))
}

// TestEvents: samples of an event have their own types and unit, and no period of time. An event without amounts has
// one profile.
func TestEvents(t *testing.T) {
	samples := shipped.Samples(200, false)
	for _, s := range samples {
		s.CPU, s.Bytes = 0, 4096
	}
	for kind, want := range map[profile.EventKind]map[string]profile.Weight{
		{Name: "alloc", Unit: profile.Bytes}: {"alloc_samples count": profile.Samples, "alloc_space bytes": profile.Bytes},
		{Name: "libc:write"}:                 {"libc_write count": profile.Samples},
	} {
		b := shipped.Batch(samples, batch.GatherOptions{})
		b.Event, b.Meta.Interval = kind, 0
		r := shipped.ParseOTLP(t, Encode(b))
		valid(t, r)
		d, got := r.Dictionary, r.ResourceProfiles[0].ScopeProfiles[0].Profiles
		if len(got) != len(want) {
			t.Errorf("%s: %d profiles", kind.Name, len(got))
		}
		for _, p := range got {
			name := d.StringTable[p.SampleType.TypeStrindex]
			weight, ok := want[name+" "+d.StringTable[p.SampleType.UnitStrindex]]
			if unit := d.StringTable[p.PeriodType.UnitStrindex]; !ok || p.Period != 0 || unit == "nanoseconds" {
				t.Errorf("%s: %s, period %d of %s", kind.Name, name, p.Period, unit)
				continue
			}
			counts := shipped.Collapsed(t, samples, profile.Samples)
			for stack := range counts {
				if weight == profile.Bytes {
					counts[stack] *= 4096
				}
			}
			shipped.Same(t, name, shipped.OTLP(t, r, name), counts)
		}
	}
}

// TestEmpty: a batch without samples is also a message.
func TestEmpty(t *testing.T) {
	shipped.ParseOTLP(t, Encode(&batch.Batch{}))
	one := batch.Sum{Stack: &profile.Stack{}, Points: []batch.Point{{}}}
	shipped.ParseOTLP(t, Encode(&batch.Batch{Samples: []batch.Sum{one}}))
}

// valid checks what the definition demands and servers check. The first entry of each table is empty. No entry occurs
// twice. Every index has an entry. Samples have one shape. Times are within the profile's. Strings are UTF-8, which the
// decoder checks.
func valid(t *testing.T, r *collector.ExportProfilesServiceRequest) {
	t.Helper()
	d := reflect.ValueOf(r.Dictionary).Elem()
	sizes := make(map[string]int)
	for i := range d.NumField() {
		field := d.Type().Field(i)
		if !strings.HasSuffix(field.Name, "Table") {
			continue
		}
		list := d.Field(i)
		sizes[field.Name] = list.Len()
		seen := make(map[string]bool)
		for j := range list.Len() {
			entry := fmt.Sprint(list.Index(j).Interface())
			if seen[entry] || j == 0 && entry != "" {
				t.Errorf("%s: entry %d is %q", field.Name, j, entry)
			}
			seen[entry] = true
		}
		if list.Len() == 0 {
			t.Errorf("%s is empty", field.Name)
		}
	}
	for _, l := range r.Dictionary.LocationTable {
		check(t, sizes["MappingTable"], l.MappingIndex)
		check(t, sizes["AttributeTable"], l.AttributeIndices...)
		for _, line := range l.Lines {
			check(t, sizes["FunctionTable"], line.FunctionIndex)
		}
	}
	for _, s := range r.Dictionary.StackTable {
		check(t, sizes["LocationTable"], s.LocationIndices...)
	}
	for _, p := range r.ResourceProfiles[0].ScopeProfiles[0].Profiles {
		validProfile(t, p, sizes)
	}
}

func validProfile(t *testing.T, p *profiles.Profile, sizes map[string]int) {
	t.Helper()
	if p.PeriodType == nil || p.SampleType == nil {
		t.Error("a type is missing")
	}
	identities := make(map[string]bool)
	shapes := make(map[bool]bool)
	for _, s := range p.Samples {
		check(t, sizes["StackTable"], s.StackIndex)
		check(t, sizes["AttributeTable"], s.AttributeIndices...)
		shapes[len(s.TimestampsUnixNano) > 0] = true
		check(t, sizes["LinkTable"], s.LinkIndex)
		identity := fmt.Sprint(s.StackIndex, s.AttributeIndices, s.LinkIndex)
		if identities[identity] {
			t.Errorf("two samples are the same: %s", identity)
		}
		identities[identity] = true
		for _, at := range s.TimestampsUnixNano {
			if at < p.TimeUnixNano || at >= p.TimeUnixNano+p.DurationNano {
				t.Errorf("%v lies outside", time.Unix(0, int64(at)))
			}
		}
		if len(s.Values) > 1 || len(s.Values)+len(s.TimestampsUnixNano) == 0 {
			t.Errorf("%d values", len(s.Values))
		}
	}
	if len(shapes) != 1 {
		t.Errorf("samples have %d shapes", len(shapes))
	}
}

func check(t *testing.T, size int, indices ...int32) {
	t.Helper()
	for _, i := range indices {
		if i < 0 || int(i) >= size {
			t.Errorf("index %d of %d", i, size)
		}
	}
}
