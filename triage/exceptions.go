package triage

import (
	"fmt"
	"slices"
	"strings"

	"goprof/profile"
	"goprof/profile/naming"
	"goprof/vmstructs"
)

// The JVM does not count exceptions, but stacks show their cost. To create an exception, the JVM walks the stack. To
// throw it, the JVM searches frame by frame for a handler. A program that uses exceptions only for errors spends less
// than one percent of its CPU time there.
const (
	throwShare = 0.15 // of the program's CPU time
	throwCPUs  = 0.02 // of one CPU: some hundred exceptions per second
)

func exceptions(x *exam) *suspicion {
	w := &x.work
	if x.CPU == nil {
		return x.cannotTell("there is no recording of CPU time")
	}
	if x.starved() {
		return x.cannotTell(starvedText)
	}
	share := float64(w.throwing.samples) / float64(max(w.app, 1))
	if w.app < leastSamples || share < throwShare || w.cpus(w.throwing.samples) < throwCPUs {
		return nil
	}
	s := &suspicion{sure: scaled(share, throwShare, 0.7, 0.88), severity: profile.Warning,
		claim: fmt.Sprintf("Exceptions are thrown all the time: %s of the program's CPU time goes into them.",
			percent(share)),
		next: fmt.Sprintf("goprof record --pid %d -d 30s && goprof flame out.collapsed  (search fillInStackTrace)", x.PID)}
	for _, c := range profile.ByCount(w.throwing.classes)[:min(3, len(w.throwing.classes))] {
		s.evidence = append(s.evidence, fmt.Sprintf("%s of that makes %s", percent(w.throwing.part(w.throwing.classes[c])),
			c))
	}
	for _, m := range profile.ByCount(w.throwing.sites)[:min(3, len(w.throwing.sites))] {
		s.evidence = append(s.evidence, fmt.Sprintf("%s of that in %s", percent(w.throwing.part(w.throwing.sites[m])), m))
	}
	return s
}

func (t *throwing) part(n int64) float64 { return float64(n) / float64(max(t.samples, 1)) }

const fillIn = "java.lang.Throwable.fillInStackTrace"

// count adds n samples, root first, if an exception is created or thrown there.
func (t *throwing) count(frames []profile.Frame, n int64) {
	i := slices.IndexFunc(frames, func(f profile.Frame) bool {
		return strings.HasPrefix(f.Func.Name, fillIn) || vmstructs.SeeksHandler(f.Func.Name)
	})
	if i <= 0 {
		return
	}
	t.samples += n
	class, site := "", ""
	for i--; i > 0; i-- {
		name := frames[i].Func.Name
		if !frames[i].Kind.Java() || naming.IsFold(name) {
			continue
		}
		if made, ok := strings.CutSuffix(name, ".<init>"); ok && site == "" {
			class = made // constructors call those of their superclass, so the outermost is that of the class
			continue
		}
		if site == "" || naming.OfLibrary(site) { // the program's method that called the library's throwing method
			site = name
		}
		if !naming.OfLibrary(site) {
			break
		}
	}
	if class != "" && (t.classes[class] > 0 || len(t.classes) < maxNames) {
		t.classes[class] += n
	}
	if site != "" && (t.sites[site] > 0 || len(t.sites) < maxNames) {
		t.sites[site] += n
	}
}
