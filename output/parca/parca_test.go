package parca

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"goprof/output/ship/wire"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/protobuf"
	"goprof/testdata/shipped"
)

// TestWriteRaw: by gRPC and by HTTP, the request arrives at Parca's address. It has our labels, and a profile with the
// stacks and counts of our collapsed text.
func TestWriteRaw(t *testing.T) {
	var path string
	var body []byte
	address := shipped.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Grpc-Status", "0")
	})
	samples := shipped.Samples(300, false)
	for scheme, want := range map[string]string{
		"http": "/api/profiles/writeraw", "grpc": "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
	} {
		d, err := New(wire.Options{URL: scheme + "://" + address})
		if err != nil {
			t.Fatal(err)
		}
		message, err := d.Encode(shipped.Batch(samples, batch.GatherOptions{}))
		if err == nil {
			err = d.Send(context.Background(), message)
		}
		if err != nil || path != want {
			t.Fatalf("%s: %v, %s", scheme, err, path)
		}
		read := ofJSON
		if scheme == "grpc" {
			read, body = ofMessage, body[5:]
		}
		labels, data := read(t, body)
		if labels["__name__"] != "process_cpu" || labels["service_name"] != "shop" || labels["host_name"] != "host-7" {
			t.Errorf("%q", labels)
		}
		shipped.Same(t, "samples", shipped.PProf(t, data, "samples"), shipped.Collapsed(t, samples, profile.Samples))
		shipped.Same(t, "cpu", shipped.PProf(t, data, "cpu"), shipped.Collapsed(t, samples, profile.CPUTime))
	}
}

func ofJSON(t *testing.T, body []byte) (labels map[string]string, data []byte) {
	t.Helper()
	var r struct {
		Series []struct {
			Labels struct {
				Labels []struct{ Name, Value string }
			}
			Samples []struct{ RawProfile string }
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	labels = make(map[string]string)
	for _, l := range r.Series[0].Labels.Labels {
		labels[l.Name] = l.Value
	}
	data, err := base64.StdEncoding.DecodeString(r.Series[0].Samples[0].RawProfile)
	if err != nil {
		t.Fatal(err)
	}
	return labels, data
}

// ofMessage reads a WriteRawRequest (parca/profilestore/v1alpha1/profilestore.proto).
func ofMessage(t *testing.T, body []byte) (labels map[string]string, data []byte) {
	t.Helper()
	one := func(message []byte, id int) (list [][]byte) {
		if err := protobuf.Each(message, func(f protobuf.Field) bool {
			if f.ID == id {
				list = append(list, f.Data)
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		return list
	}
	labels = make(map[string]string)
	series := one(body, 2)[0]
	for _, l := range one(one(series, 1)[0], 1) {
		labels[string(one(l, 1)[0])] = string(one(l, 2)[0])
	}
	return labels, one(one(series, 2)[0], 1)[0]
}
