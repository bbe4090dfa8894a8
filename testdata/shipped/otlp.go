package shipped

import (
	"testing"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/profiles/v1development"
	profiles "go.opentelemetry.io/proto/slim/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

// ParseOTLP decodes a message with the code that OpenTelemetry generates from its definition.
func ParseOTLP(t testing.TB, message []byte) *collector.ExportProfilesServiceRequest {
	t.Helper()
	var r collector.ExportProfilesServiceRequest
	if err := (proto.UnmarshalOptions{}).Unmarshal(message, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// OTLP are the counts of the profiles of one type: "samples", "cpu", "wall".
func OTLP(t testing.TB, r *collector.ExportProfilesServiceRequest, sampleType string) Counts {
	t.Helper()
	counts := make(Counts)
	d := r.Dictionary
	for _, of := range r.ResourceProfiles {
		for _, scope := range of.ScopeProfiles {
			for _, p := range scope.Profiles {
				if d.StringTable[p.SampleType.TypeStrindex] != sampleType {
					continue
				}
				for _, s := range p.Samples {
					n := int64(len(s.TimestampsUnixNano))
					if len(s.Values) > 0 {
						n = 0
					}
					for _, v := range s.Values {
						n += v
					}
					counts.Add(otlpStack(d, s.StackIndex), n)
				}
			}
		}
	}
	return counts
}

func otlpStack(d *profiles.ProfilesDictionary, stack int32) (names []string) {
	for _, i := range d.StackTable[stack].LocationIndices {
		l := d.LocationTable[i]
		for _, line := range l.Lines {
			names = append(names, d.StringTable[d.FunctionTable[line.FunctionIndex].NameStrindex])
		}
		if len(l.Lines) == 0 {
			names = append(names, Nameless(d.StringTable[d.MappingTable[l.MappingIndex].FilenameStrindex], l.Address))
		}
	}
	return names
}
