package heat

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"goprof/output/recording"
	"goprof/profile"
)

// fake is a recording that a test has made.
type fake struct {
	info    recording.Info
	samples []profile.Sample
	marks   []recording.Mark
}

func (f *fake) Info() recording.Info { return f.info }

func (f *fake) Each(visit func(*profile.Sample) error) error {
	for i := range f.samples {
		s := f.samples[i]
		if err := visit(&s); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) Marks(visit func(recording.Mark) error) error {
	for _, m := range f.marks {
		if err := visit(m); err != nil {
			return err
		}
	}
	return nil
}

var begin = time.Date(2026, 11, 22, 3, 14, 7, 0, time.UTC)

func at(d time.Duration) profile.Instant {
	return profile.Instant{Wall: begin.UnixNano() + int64(d), Ticks: int64(d)}
}

// names makes the Func of each name once.
type names map[string]*profile.Func

func (n names) stack(rootFirst ...string) *profile.Stack {
	s := &profile.Stack{}
	for i := len(rootFirst) - 1; i >= 0; i-- {
		f := n[rootFirst[i]]
		if f == nil {
			f = &profile.Func{Name: rootFirst[i]}
			n[rootFirst[i]] = f
		}
		s.Frames = append(s.Frames, profile.Frame{Func: f, Kind: profile.C2, BCI: -1})
	}
	return s
}

func timed(meta profile.Meta, samples ...profile.Sample) *fake {
	return &fake{info: recording.Info{Name: "x.jfr", Format: "jfr", Timed: true, Meta: meta}, samples: samples}
}

func draw(t testing.TB, src recording.Source, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, src, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// shop is a server under load: 60 s at 200 Hz in three pools. It has a batch job from 30 s to 42 s, a collection
// every 4 s, and a second of silence at 50 s.
func shop() *fake {
	n, r := names{}, rand.New(rand.NewPCG(7, 9))
	f := timed(profile.Meta{MainClass: "shop.Main", Mode: profile.ModeCPU, Start: begin, Duration: time.Minute,
		Interval: 5 * time.Millisecond})
	run := []string{"java.lang.Thread.run", "java.util.concurrent.ThreadPoolExecutor.runWorker", "shop.Server.handle"}
	paths := [][]string{
		{"shop.Cart.total", "shop.Price.of", "java.util.HashMap.get"}, {"shop.Cart.total", "shop.Price.of"},
		{"shop.Search.find", "shop.Index.lookup"},
		{"shop.Search.find", "shop.Index.score", "java.lang.Math.fma"},
		{"shop.Json.write", "java.lang.StringBuilder.append"}, {"shop.Json.write"},
	}
	batch := [][]string{{"java.lang.Thread.run", "shop.Batch.run", "shop.Report.render", "java.util.TreeMap.put"},
		{"java.lang.Thread.run", "shop.Batch.run", "shop.Report.sort"}}
	for d := time.Duration(0); d < time.Minute; d += 5 * time.Millisecond {
		if d >= 50*time.Second && d < 51*time.Second {
			continue
		}
		when := d + time.Duration(r.IntN(4))*time.Millisecond
		if r.IntN(10) < 6 {
			p := append(append([]string{}, run...), paths[r.IntN(len(paths))]...)
			f.samples = append(f.samples, profile.Sample{At: at(when), Stack: n.stack(p...),
				Thread: profile.Thread{TID: 100 + r.IntN(8), JavaName: fmt.Sprintf("http-nio-8080-exec-%d", 1+r.IntN(8))}})
		}
		if d > 30*time.Second && d < 42*time.Second {
			f.samples = append(f.samples, profile.Sample{At: at(when), Stack: n.stack(batch[r.IntN(2)]...),
				Thread: profile.Thread{TID: 90, JavaName: "batch"}})
		}
		if d%(4*time.Second) < 150*time.Millisecond {
			for worker := range 3 {
				s := n.stack("start_thread", "GangWorker::run", "G1ParScanThreadState::trim_queue")
				for i := range s.Frames {
					s.Frames[i].Kind = profile.Native
				}
				f.samples = append(f.samples, profile.Sample{At: at(when), Stack: s,
					Thread: profile.Thread{TID: 20 + worker, Name: fmt.Sprintf("GC Thread#%d", worker)}})
			}
		}
		if d%(4*time.Second) == 0 {
			f.marks = append(f.marks, recording.Mark{Kind: "gc", Text: "G1 Evacuation Pause (young)", At: at(d),
				For: 150 * time.Millisecond})
		}
	}
	f.marks = append(f.marks, recording.Mark{Kind: "safepoint", Text: "Deoptimize", At: at(33 * time.Second),
		For: 40 * time.Millisecond},
		recording.Mark{Kind: "pause", Text: "held by goprof", At: at(47 * time.Second), For: 90 * time.Millisecond})
	return f
}
