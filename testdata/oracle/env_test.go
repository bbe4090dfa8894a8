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

// envText is what an environment variable says, or otherwise.
func envText(name, otherwise string) string {
	if text := os.Getenv(name); text != "" {
		return text
	}
	return otherwise
}
