package naming

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"goprof/profile"
)

var (
	lastNumber  = regexp.MustCompile(`(^|[^0-9.:])[0-9]+$`)
	inBrackets  = regexp.MustCompile(`\([0-9]+\)`)
	hexadecimal = regexp.MustCompile(`\b0x[0-9a-fA-F]+\b`)
	httpClient  = regexp.MustCompile(`^HttpClient-[0-9]+-Worker-`)
)

// Pool returns the common name of threads whose names only differ by a number. "*" replaces the number at the end of
// the name, numbers alone in parentheses, hexadecimal numbers, and the number of a java.net.http.HttpClient. Programs
// make many of these clients, and each has an executor (jdk.internal.net.http.HttpClientImpl, DefaultThreadFactory).
//
//	pool-1-thread-17            pool-1-thread-*
//	http-nio-8080-exec-12       http-nio-8080-exec-*
//	C2 CompilerThread0          C2 CompilerThread*
//	RMI TCP Connection(2)-idle  RMI TCP Connection(*)-idle
//	[0x27dcf714] Server socket  [*] Server socket
//	HttpClient-3-Worker-1       HttpClient-*-Worker-*
//
// A number after a dot or a colon belongs to an address, and stays.
func Pool(name string) string {
	name = lastNumber.ReplaceAllString(hexadecimal.ReplaceAllString(name, "*"), "${1}*")
	return httpClient.ReplaceAllString(inBrackets.ReplaceAllString(name, "(*)"), HTTPWorkers)
}

// HTTPWorkers is the beginning of the Pool name for the threads of all clients.
const HTTPWorkers = "HttpClient-*-Worker-"

// threadLabel matches the frame at the root of a thread's stacks: the name, if there is one, and a number.
var threadLabel = regexp.MustCompile(`(?s)^\[(?:(.*) )?(tid=|virtual #)(?:[0-9]+|\?)\]$`)

// IsThreadLabel reports whether a frame is a thread's label: "[name tid=4711]" or, for virtual threads, "[name virtual
// #31]".
func IsThreadLabel(label string) bool {
	return threadLabel.MatchString(label) || poolLabel.MatchString(label)
}

var poolLabel = regexp.MustCompile(`^\[(?:.* )?(?:tid=|virtual #)\*\]$`)

// PoolLabel converts "[pool-1-thread-17 tid=4711]" to "[pool-1-thread-* tid=*]", and "[virtual #31]" to "[virtual #*]".
// It does not change other texts.
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

// ThreadLabel returns the frame for the root of a thread's stacks: "[name tid=4711]", "[name virtual #31]". An unknown
// number is "?", and the number of a pool is "*".
func ThreadLabel(t *profile.Thread) string {
	name, number, kind := cmp.Or(t.JavaName, t.Name), int64(t.TID), "tid="
	if t.Virtual { // the kernel's name is the carrier's
		name, number, kind = t.JavaName, t.JavaID, "virtual #"
	}
	text := "?"
	switch {
	case number > 0:
		text = strconv.FormatInt(number, 10)
	case strings.HasSuffix(name, "*"):
		text = "*"
	}
	if name != "" {
		name += " "
	}
	return "[" + name + kind + text + "]"
}

var anyLabel = regexp.MustCompile(`(?s)^\[(?:(.*) )?(tid=|virtual #)([0-9]+|\?|\*)\]$`)

// ThreadOf is the inverse of ThreadLabel: it returns the thread that a label names.
func ThreadOf(label string) (t profile.Thread, ok bool) {
	m := anyLabel.FindStringSubmatch(label)
	if m == nil {
		return t, false
	}
	number, err := strconv.ParseInt(m[3], 10, 64)
	if err != nil {
		number = 0
	}
	t.JavaName = m[1]
	if t.Virtual = m[2] != "tid="; t.Virtual {
		t.JavaID = number
	} else {
		t.TID = int(number)
	}
	return t, true
}
