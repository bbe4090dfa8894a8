//go:build linux

package oracle

import (
	"os"
	"strconv"
)

// envNumber is the number in a variable of the environment, by which tests are made longer (scripts/prove.sh).
func envNumber(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// javacClasses is how many classes truth.JavacLoop compiles in a round. The program ends after two rounds at the
// soonest: of 200 classes these take 16 s of CPU time on JDK 25, of 30 classes 6 s.
var javacClasses = func() string {
	for _, name := range []string{"GOPROF_PROVE", "GOPROF_LEAF_SAMPLES", "GOPROF_JAVAC_SAMPLES",
		"GOPROF_OVERLOAD_SECONDS"} {
		if os.Getenv(name) != "" {
			return "200"
		}
	}
	return "30"
}()

// envText is what an environment variable says, or otherwise.
func envText(name, otherwise string) string {
	if text := os.Getenv(name); text != "" {
		return text
	}
	return otherwise
}
