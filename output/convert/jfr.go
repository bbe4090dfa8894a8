package convert

import (
	"io"
	"math"
	"time"

	"goprof/output/jfr"
	"goprof/output/recording"
	"goprof/profile"
)

// writeJFR writes samples with their times, for all parts that are read. Waits become samples of wall-clock time. It
// also keeps marks, and the starts and ends of threads.
func writeJFR(to io.Writer, src *watched, tell func(string)) error {
	i := src.Info()
	if !i.Timed {
		return &recording.Lacks{Problem: "jfr is made of samples with times, and a " + i.Format + " file has none",
			Remedy: "pprof, speedscope or html: -o FILE.pb.gz"}
	}
	w := jfr.NewWriter(to, jfr.Options{})
	account := i.Summary
	if i.All {
		account = setParts(w, &i)
	} else {
		w.SetMeta(i.Meta)
	}
	w.SetJVM(jfr.JVM{Version: i.Meta.JVM, MainClass: i.Meta.MainClass, PID: i.Meta.PID,
		Start: i.JVMStart})
	others, err := othersOf(src, tell)
	if err != nil {
		return err
	}
	last, begun := profile.Instant{}, false
	err = recording.Visit(src, recording.LaterStacks, func(s *profile.Sample) error {
		if !begun {
			begun = true
			if err := w.Tick(moved(s.At, i.Meta.Start)); err != nil {
				return err
			}
		}
		if s.At.Ticks > last.Ticks {
			last = s.At
		}
		if err := others.write(w, s.At.Ticks); err != nil {
			return err
		}
		return w.Sample(s)
	})
	if err == nil && begun {
		err = others.write(w, math.MaxInt64)
	}
	if err != nil || !begun {
		return err
	}
	if account != nil {
		if err := w.Account(last, account); err != nil {
			return err
		}
	}
	return w.Close(moved(last, i.Meta.Start.Add(i.Meta.Duration)))
}

// setParts writes how each part was recorded. It returns the account of the first part, which contains the accounts of
// the others. Parts that were recorded together share one account.
func setParts(w *jfr.Writer, i *recording.Info) (account *profile.Summary) {
	told := make(map[string]bool)
	for k := range i.Parts {
		p := &i.Parts[k]
		if told[p.Meta.Part] {
			continue
		}
		if told[p.Meta.Part] = true; k == 0 {
			w.SetMeta(p.Meta)
		} else {
			w.AddPart(p.Meta)
		}
		if p.Summary == nil {
			continue
		}
		sum := *p.Summary
		if sum.Meta = p.Meta; account == nil {
			account = &sum
		} else {
			account.Parts = append(account.Parts, sum)
		}
	}
	return account
}

// maxIdle bounds the time between a recording's beginning or end and its samples.
const maxIdle = 24 * time.Hour

// moved converts a time of the wall clock to a time on both clocks. known is a time that is known on both.
func moved(known profile.Instant, to time.Time) profile.Instant {
	if to.IsZero() {
		return known
	}
	d := to.UnixNano() - known.Wall
	if d < -int64(maxIdle) || d > int64(maxIdle) {
		return known
	}
	return profile.Instant{Wall: known.Wall + d, Ticks: known.Ticks + d}
}
