//go:build linux

package oracle

import (
	"bufio"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// gdbFrame is one frame as gdb shows it.
type gdbFrame struct {
	name   string // "??": gdb knows none
	pc, sp uint64
}

// gdbCommands make gdb show each frame of each thread as "bt" does, and below it a line with its pc and
// sp. Only by these can frames that it adds from debug information (inlined functions, tail calls) be
// told from those on the stack. Beyond the first Java frame gdb is lost; what it makes up there is
// bounded.
var gdbCommands = []string{
	"set width 0", "set print frame-arguments none", "set print address on",
	"set backtrace past-main on", "set backtrace past-entry on", "set backtrace limit 100",
	`thread apply all frame apply all printf "at %#lx %#lx\n", $pc, $sp`,
}

var (
	gdbThread = regexp.MustCompile(`^Thread \d+ \(.*?\bLWP (\d+)\b`) // of another C library than gdb's: (LWP 1 "java")
	gdbLine   = regexp.MustCompile(`^#\d+ +(?:0x[0-9a-f]+ in )?(.*)$`)
	gdbAt     = regexp.MustCompile(`^at (?:0x)?([0-9a-f]+) (?:0x)?([0-9a-f]+)$`)
	gdbPlace  = regexp.MustCompile(` (from|at) \S+$`)
)

// gdbThreads reads what gdb says to gdbCommands, by thread number.
func gdbThreads(r io.Reader) (map[int][]gdbFrame, error) {
	threads, tid, name := map[int][]gdbFrame{}, 0, ""
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := in.Text()
		if m := gdbThread.FindStringSubmatch(line); m != nil {
			tid, _ = strconv.Atoi(m[1]) // digits; a number too large is no thread of ours
			threads[tid] = nil
		} else if m := gdbLine.FindStringSubmatch(line); m != nil && tid != 0 {
			name = gdbName(m[1])
		} else if m := gdbAt.FindStringSubmatch(line); m != nil {
			pc, err1 := strconv.ParseUint(m[1], 16, 64)
			sp, err2 := strconv.ParseUint(m[2], 16, 64)
			if err1 != nil || err2 != nil || name == "" {
				return nil, fmt.Errorf("%q: no frame's pc and sp", line)
			}
			threads[tid] = append(threads[tid], gdbFrame{name, pc, sp})
			name = ""
		}
	}
	return threads, in.Err()
}

// gdbName cuts "Parker::park(bool, long) () from libjvm.so" and "__libc_read (fd=...) at read.c:26" to
// their names, without parameters, as goprof shows them.
func gdbName(text string) string {
	text = gdbPlace.ReplaceAllString(text, "")
	text = strings.TrimSpace(withoutLastParens(text)) // the arguments
	for strings.HasSuffix(text, "]") {                // [clone .constprop.0]
		text = strings.TrimSpace(text[:max(strings.LastIndexByte(text, '['), 0)])
	}
	text = strings.TrimSuffix(text, " const")
	if strings.HasSuffix(text, ")") && !strings.HasSuffix(text, "operator()") {
		text = strings.TrimSpace(withoutLastParens(text)) // the parameters
	}
	text, _, _ = strings.Cut(text, "@") // a version: read@@GLIBC_2.2.5
	return text
}

// withoutLastParens cuts the last pair of parentheses, which is at the end.
func withoutLastParens(text string) string {
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return text[:i]
			}
		}
		if depth == 0 {
			break
		}
	}
	return text
}

// The ways in which gdb and goprof may differ on native frames. The list is closed: anything else
// fails, and each is counted.
type nativeWay string

const (
	sameName     nativeWay = "same name"
	otherName    nativeWay = "another name of the same address, by the image's symbols"
	cloneName    nativeWay = "the compiler's clone, which debug information calls by the original's name"
	noNameInGDB  nativeWay = "no symbol in gdb"
	inlinedInGDB nativeWay = "more in gdb: inlined, by debug information"
	tailInGDB    nativeWay = "more in gdb: has jumped to the function above, by debug information"
)

// nativeJudge compares the native frames of stacks with gdb's.
type nativeJudge struct {
	aliases func(module, a, b string) bool
	ways    map[nativeWay]int
	frames  int // compared: names, pcs and sps
	whole   int // threads that have no Java frames, to their roots
	threads int
}

// difference tells the first native frame in which gdb and a walk differ; empty if they agree.
// Compared are all frames down to the first of Java, that one's pc included, or to the thread's root.
// Each must have gdb's pc, sp and name.
func (j *nativeJudge) difference(gdb []gdbFrame, ours *dumpedThread) string {
	if why := notWhole(ours); why != "" {
		return why
	}
	physical, ways := physicalFrames(gdb)
	for i := range ours.Frames {
		f := &ours.Frames[i]
		if i >= len(physical) {
			return fmt.Sprintf("frame %d, %s, is not in gdb's stack", i, f.Name)
		}
		g := &physical[i]
		// A dump breaks no call off, so the caller of epoll_wait may be unknown. The walk says so.
		if i > 0 && f.Kind == "gap" && f.Name == "[native frames that only a stop can tell]" {
			j.count(ways[:i], i, false)
			return ""
		}
		if address(f.PC) != g.pc {
			return fmt.Sprintf("frame %d is %s with pc %s, gdb's is %s with %#x", i, f.Name, f.PC, g.name, g.pc)
		}
		if f.Kind != "native" {
			if g.name != "??" || i == 0 {
				return fmt.Sprintf("frame %d is %s %s, gdb's is %s", i, f.Kind, f.Name, g.name)
			}
			j.count(ways[:i], i, false)
			return ""
		}
		way, ok := j.way(g, f)
		if !ok || address(f.SP) != g.sp {
			return fmt.Sprintf("frame %d, pc %#x, is %s with sp %s, gdb's is %s with sp %#x", i, g.pc, f.Name, f.SP, g.name,
				g.sp)
		}
		ways[i] = append(ways[i], way)
	}
	if len(physical) > len(ours.Frames) {
		return fmt.Sprintf("gdb has another frame below the last, %s", physical[len(ours.Frames)].name)
	}
	j.count(ways, len(ours.Frames), true)
	return ""
}

func (j *nativeJudge) count(ways [][]nativeWay, frames int, whole bool) {
	for _, way := range slices.Concat(ways...) {
		j.ways[way]++
	}
	j.frames += frames
	j.threads++
	if whole {
		j.whole++
	}
}

// physicalFrames leaves out what gdb has added from debug information, and says where: an inlined
// function has the pc and sp of the one it is inlined into, which is the next; a function that
// has ended with a jump has no frame any more: its sp is that of the next.
func physicalFrames(gdb []gdbFrame) (physical []gdbFrame, ways [][]nativeWay) {
	var added []nativeWay
	for i, g := range gdb {
		if i+1 < len(gdb) && gdb[i+1].sp == g.sp && g.name != "??" {
			if gdb[i+1].pc == g.pc {
				added = append(added, inlinedInGDB)
			} else {
				added = append(added, tailInGDB)
			}
			continue
		}
		physical, ways = append(physical, g), append(ways, added)
		added = nil
	}
	return physical, ways
}

// cloneSuffix is what GCC appends to the names of the copies that it makes of functions.
var cloneSuffix = regexp.MustCompile(`(\.(constprop|isra|part|cold|lto_priv)(\.\d+)*)+$`)

func (j *nativeJudge) way(g *gdbFrame, f *dumpedFrame) (nativeWay, bool) {
	switch {
	case g.name == f.Name:
		return sameName, true
	case g.name == "??":
		return noNameInGDB, true
	case cloneSuffix.ReplaceAllString(f.Name, "") == g.name:
		return cloneName, true
	case j.aliases(f.Module, g.name, f.Name):
		return otherName, true
	}
	return "", false
}

// imageSymbols reads the symbols of a process's images, with Go's own ELF reader.
type imageSymbols struct {
	paths map[string]string // of mapped images, by the last part of their names
	read  map[string]map[string][]uint64
}

// alias reports whether two names of an image stand for one address.
func (s *imageSymbols) alias(module, a, b string) bool {
	path, ok := s.paths[module]
	if !ok {
		return false
	}
	if s.read[module] == nil {
		s.read[module] = symbolAddresses(path)
	}
	return slices.ContainsFunc(s.read[module][a],
		func(addr uint64) bool { return slices.Contains(s.read[module][b], addr) })
}

// symbolAddresses are the functions of an ELF file and of its file of debug information, by name.
func symbolAddresses(path string) map[string][]uint64 {
	all := map[string][]uint64{}
	id := addSymbols(all, path)
	if len(id) > 2 {
		addSymbols(all, filepath.Join("/usr/lib/debug/.build-id", id[:2], id[2:]+".debug"))
	}
	return all
}

// addSymbols returns the file's build id. A file that is not there, or has no symbols, adds none.
func addSymbols(all map[string][]uint64, path string) (buildID string) {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for _, table := range []func() ([]elf.Symbol, error){f.Symbols, f.DynamicSymbols} {
		symbols, _ := table()
		for _, s := range symbols {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF {
				all[s.Name] = append(all[s.Name], s.Value)
			}
		}
	}
	// A note has 12 bytes of header and the name "GNU\0" before its content (elf(5)).
	if s := f.Section(".note.gnu.build-id"); s != nil {
		if note, err := s.Data(); err == nil && len(note) > 16 {
			return hex.EncodeToString(note[16:])
		}
	}
	return ""
}
