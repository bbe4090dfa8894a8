package naming

import (
	"cmp"
	"regexp"
	"strings"

	"goprof/profile"
)

// One rule decides which frame the time of a waiting thread counts for: the topmost Java method in which threads do
// more than wait. The account, tables, pictures and goprof top use it.

// waitsIn matches methods in which threads wait, or wake up others. These methods count for their callers.
var waitsIn = regexp.MustCompile(`^(?:(?:jdk\.internal\.misc|sun\.misc)\.Unsafe\.(?:un)?park|` +
	`java\.lang\.VirtualThread\.(?:park|sleep|yield|join|afterYield|schedule).*|` +
	`jdk\.internal\.misc\.VirtualThreads\..*|java\.lang\.System\$\d+\.(?:park|unpark)VirtualThread|` +
	`java\.util\.concurrent\.locks\..*|java\.lang\.Object\.wait.*|` +
	`java\.lang\.Thread\.(?:sleep.*|yield.*|join.*|beforeSleep|afterSleep)|java\.util\.concurrent\.ForkJoinPool\.(?:managedBlock|unmanagedBlock|compensatedBlock)|` +
	`jdk\.internal\.vm\..*|sun\.nio\.(?:ch|fs)\..*|sun\.net\..*|java\.net\..*|java\.io\..*|jdk\.internal\.event\..*)$`)

// Waits reports whether threads wait in a Java method. The name may have "/" for dots.
func Waits(method string) bool { return waitsIn.MatchString(strings.ReplaceAll(method, "/", ".")) }

// WaitsNatively reports whether threads wait in a function of the C library or of HotSpot.
func WaitsNatively(function string) bool {
	return futexes.MatchString(function) || waits.MatchString(function)
}

// TopJava returns the name of a stack's topmost Java method. It is empty if there is none. If the thread waits, methods
// in which threads wait are skipped.
func TopJava(s *profile.Stack, waits bool) (top string) {
	for i := range s.Frames {
		f := &s.Frames[i]
		if f.Func == nil || !f.Kind.Java() {
			continue
		}
		if !waits || !Waits(f.Func.Name) {
			return f.Func.Name
		}
		top = cmp.Or(top, f.Func.Name) // there may be no other
	}
	return top
}
