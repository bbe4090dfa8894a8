package triage

import (
	"fmt"

	"goprof/profile"
)

// The JVM stops its compilers when it finds no room for code. It continues with the compiled code that it has, and with
// the interpreter, which is many times slower. The JVM frees old code when it needs room, so a nearly full cache is
// harmless as long as there is room.
const (
	fullCode = 0.97
	// roomy is the least fill of the cache that can explain why compilers take no tasks. It is used only if there is no
	// better sign: JDKs up to 8 do not count failures to find room, and the JVM has not turned its compilers off for
	// good. It is far below 1, because a full cache may seem to have room. Compilers that end return their buffers, and
	// the JVM also counts free pieces that are too small to use.
	roomy = 0.75
)

func codeCacheFull(x *exam) *suspicion {
	code := &x.last.JVM.Code
	full, known := code.Total.Full()
	compiling, told := code.Compiling.Get()
	if !known {
		return x.cannotTell("the code cache could not be read")
	}
	refused, before := x.refusals()
	gaveUp := code.GaveUp.Or(false)
	off := told && !compiling && (refused > 0 || full >= roomy || gaveUp)
	if !off && full < fullCode && refused == before {
		return nil
	}
	s := &suspicion{sure: 0.92, severity: profile.Critical, claim: "The code cache is full: new code finds no room.",
		next: "a larger -XX:ReservedCodeCacheSize at the next start"}
	if off {
		s.claim = "The code cache is full, and the JVM has stopped its compilers: new code runs in the interpreter."
	}
	s.evidence = append(s.evidence, fmt.Sprintf("%s of %s are used (%s)", size(code.Total.Used.Or(0)),
		size(code.Total.Max.Or(0)), percent(full)))
	for _, h := range code.Heaps {
		if share, ok := h.Full(); ok && len(code.Heaps) > 1 {
			s.evidence = append(s.evidence, fmt.Sprintf("%s: %s", h.Name, percent(share)))
		}
	}
	if gaveUp {
		s.evidence = append(s.evidence, "the JVM has turned its compilers off by itself: no flag did")
	}
	if refused > 0 {
		s.evidence = append(s.evidence, fmt.Sprintf("no room was found %d times, %d of them now", refused, refused-before))
	}
	return s
}

// refusals returns how often there was no room, in all and before the first reading.
func (x *exam) refusals() (now, before uint64) {
	for _, h := range x.last.JVM.Code.Heaps {
		now += h.Refused.Or(0)
	}
	for _, h := range x.first.JVM.Code.Heaps {
		before += h.Refused.Or(0)
	}
	if now < before { // the list of heaps has changed
		return now, now
	}
	return now, before
}
