package naming

import (
	"regexp"
	"strings"
)

var (
	lastNumber = regexp.MustCompile(`(^|[^0-9.:])[0-9]+$`)
	inBrackets = regexp.MustCompile(`\([0-9]+\)`)
)

// Pool is the name of the threads that differ from this one by a number only: "*" stands for the number at
// the end of the name, and for numbers alone in parentheses.
//
//	pool-1-thread-17            pool-1-thread-*
//	http-nio-8080-exec-12       http-nio-8080-exec-*
//	C2 CompilerThread0          C2 CompilerThread*
//	RMI TCP Connection(2)-idle  RMI TCP Connection(*)-idle
//
// A number behind a dot or a colon belongs to an address, and stays.
func Pool(name string) string {
	return inBrackets.ReplaceAllString(lastNumber.ReplaceAllString(name, "${1}*"), "(*)")
}

// threadMark is between the name and the number of a thread in the frame above its stacks.
const threadMark = " tid="

// PoolLabel makes "[pool-1-thread-* tid=*]" of "[pool-1-thread-17 tid=4711]", the frame that stands above
// a thread's stacks. What is no such frame stays.
func PoolLabel(label string) string {
	name, ok := strings.CutPrefix(label, "[")
	if !ok || !strings.HasSuffix(name, "]") {
		return label
	}
	at := strings.LastIndex(name, threadMark)
	if at < 0 {
		return label
	}
	return "[" + Pool(name[:at]) + threadMark + "*]"
}
