package naming

import "regexp"

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

// threadLabel is the frame that stands above a thread's stacks: the name, if there is one, and a number.
var threadLabel = regexp.MustCompile(`(?s)^\[(?:(.*) )?(tid=|virtual #)(?:[0-9]+|\?)\]$`)

// IsThreadLabel reports whether a frame is the one that stands above a thread's stacks: "[name tid=4711]" or,
// of virtual threads, "[name virtual #31]".
func IsThreadLabel(label string) bool {
	return threadLabel.MatchString(label) || poolLabel.MatchString(label)
}

// poolLabel is what PoolLabel makes.
var poolLabel = regexp.MustCompile(`^\[(?:.* )?(?:tid=|virtual #)\*\]$`)

// PoolLabel makes "[pool-1-thread-* tid=*]" of "[pool-1-thread-17 tid=4711]", and "[virtual #*]" of "[virtual #31]".
// What is no label of a thread stays.
func PoolLabel(label string) string {
	m := threadLabel.FindStringSubmatch(label)
	if m == nil {
		return label
	}
	if m[1] == "" {
		return "[" + m[2] + "*]"
	}
	return "[" + Pool(m[1]) + " " + m[2] + "*]"
}
