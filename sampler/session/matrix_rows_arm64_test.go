//go:build linux

package session

func init() {
	matrixRows = append(matrixRows,
		// Return addresses on the stack are signed, where the CPU can (JDK 19 and later; cpu/aarch64/globals_aarch64.hpp).
		matrixRow{name: "branch protection", flags: []string{"-XX:UseBranchProtection=standard"}},
		// Without the CPU's atomic instructions: pairs of exclusive loads and stores.
		matrixRow{name: "-UseLSE", flags: []string{"-XX:-UseLSE"}},
	)
}
