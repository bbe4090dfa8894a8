//go:build linux

package diagnose

import (
	"path"
	"slices"
	"strings"
)

// javaCommand is a command line of the java launcher.
type javaCommand struct {
	main          string
	args, options []string
}

// valueFollows are the launcher's options that take their value from the next word
// (java.base/share/native/libjli/java.c, IsLauncherOption and IsModuleOption).
var valueFollows = []string{
	"-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--add-modules",
	"--limit-modules", "--add-exports", "--add-opens", "--add-reads", "--patch-module", "--enable-native-access",
	"--source", "-d", "--describe-module",
}

// parseJavaCommand reads a command line as the launcher does. It does not read argument files (@file), so the main
// class may be missing. A program that has created its JVM itself (JNI_CreateJavaVM) has no main class. For such a
// program, parseJavaCommand returns the program's name, or the script's name for Python.
func parseJavaCommand(argv []string) (c javaCommand) {
	if len(argv) > 0 && !forLauncher(argv) {
		first := 0
		if strings.HasPrefix(path.Base(argv[0]), "python") && len(argv) > 1 && !strings.HasPrefix(argv[1], "-") {
			first = 1
		}
		return javaCommand{main: path.Base(argv[first]), args: argv[first+1:]}
	}
	for i := 1; i < len(argv); i++ {
		switch word := argv[i]; {
		case word == "-jar" || word == "-m" || word == "--module":
			if i+1 < len(argv) {
				c.main, c.args = argv[i+1], argv[i+2:]
			}
			return c
		case strings.HasPrefix(word, "--module="):
			c.main, c.args = strings.TrimPrefix(word, "--module="), argv[i+1:]
			return c
		case slices.Contains(valueFollows, word) && i+1 < len(argv):
			c.options = append(c.options, word, argv[i+1])
			i++
		case strings.HasPrefix(word, "-"), strings.HasPrefix(word, "@"):
			c.options = append(c.options, word)
		default:
			c.main, c.args = word, argv[i+1:]
			return c
		}
	}
	return c
}

// forLauncher reports whether a command line is the java launcher's, perhaps under another name.
func forLauncher(argv []string) bool {
	return path.Base(argv[0]) == "java" || slices.ContainsFunc(argv, func(word string) bool {
		return word == "-jar" || word == "-m" || word == "--module" || slices.Contains(valueFollows[:3], word)
	})
}

// splitCommand parses the JVM's own record of its command (sun.java.command), "main arg arg". Words may contain blanks,
// and the command line shows where they end. Without a command line, the name ends at the first blank.
func splitCommand(command string, argv []string) (main string, args []string) {
	// The last words of argv are the command if they are together as long as command. A hostile command line has half a
	// million words, so each is examined once.
	length := -1
	for i := len(argv) - 1; i >= 0 && length < len(command); i-- {
		length += 1 + len(argv[i])
		if length == len(command) && argv[i] != "" && strings.Join(argv[i:], " ") == command {
			return argv[i], argv[i+1:]
		}
	}
	words := strings.Fields(command)
	if len(words) == 0 {
		return "", nil
	}
	return words[0], words[1:]
}
