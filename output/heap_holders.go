package output

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"goprof/profile"
)

// HeapHeldText writes the holders of objects, for people. Leaks come first, if growth was measured.
func HeapHeldText(to io.Writer, h *profile.HeapHeld, top int) error {
	w := bufio.NewWriter(to)
	if h.Growth != nil {
		leaksText(w, h)
	}
	for _, c := range h.Holders {
		holdersText(w, c, top)
	}
	for _, note := range h.Notes {
		fmt.Fprintf(w, "note: %s\n", Printable(note))
	}
	if h.Growth != nil {
		if err := HeapGrowthText(w, h.Growth, top); err != nil {
			return err
		}
	}
	return w.Flush()
}

const (
	// shownFrames is how many frames of a stack are shown. leastWay is the least share of a way that is shown.
	shownFrames = 6
	leastWay    = 0.01
)

func leaksText(w io.Writer, h *profile.HeapHeld) {
	if len(h.Leaks) == 0 {
		fmt.Fprintf(w, "No leak was found: nothing that grew for certain is held by one root for certain.\n")
	}
	for _, l := range h.Leaks {
		least := ""
		if l.AtLeast {
			least = "at least "
		}
		fmt.Fprintf(w, "%s keeps what grows: %s%s of %s\n", linkText(l.Path[len(l.Path)-1]), least, rateText(l.Bytes),
			classesText(l.Classes))
		fmt.Fprintf(w, "  %s <- %s\n", CleanName(l.Classes[0]), PathText(l.Path))
		for _, a := range l.Allocs {
			stack := make([]string, 0, shownFrames)
			for _, f := range a.Stack[:min(len(a.Stack), shownFrames)] {
				stack = append(stack, CleanName(f))
			}
			fmt.Fprintf(w, "  %s of %s are allocated in %s\n", shareText(a.Share, 1), CleanName(a.Class),
				strings.Join(stack, " <- "))
		}
	}
	fmt.Fprintln(w)
}

func classesText(classes []string) string {
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = CleanName(c)
	}
	return strings.Join(names, ", ")
}

func holdersText(w io.Writer, c *profile.HeapHolders, top int) {
	newer := ""
	if c.Newer {
		newer = " that have come since the first reading"
	}
	fmt.Fprintf(w, "Who holds %s (%s objects%s were looked at)\n", CleanName(c.Class), grouped(float64(c.Looked)), newer)
	open := slices.ContainsFunc(c.Rows, func(row *profile.HeapHolder) bool { return row.Most > 0 })
	line := func(share, err, most, what string) {
		if open {
			err += fmt.Sprintf("  %8s", most)
		}
		fmt.Fprintf(w, "%8s  %s  %s\n", share, err, what)
	}
	line("share", "     +-", "at most", "held by")
	rest, left := 0.0, 0
	for i, row := range c.Rows {
		if row.Missing == "" && (i >= top || row.Share < leastWay && i > 0) {
			rest, left = rest+row.Share, left+1
			continue
		}
		most := ""
		if row.Most > 0 {
			most = shareText(row.Most, 1)
		}
		line(shareText(row.Share, 1), fmt.Sprintf("%7s", shareText(row.Error, 1)), most, holderText(row))
	}
	if left > 0 {
		line(shareText(rest, 1), "       ", "", fmt.Sprintf("%d more ways (--json has them)", left))
	}
	if c.Rest > 0 {
		line(shareText(c.Rest, 1), "       ", "", "ways that are smaller still")
	}
	fmt.Fprintln(w)
}

func holderText(row *profile.HeapHolder) string {
	text := PathText(row.Path)
	switch row.Missing {
	case profile.NoHolder:
		return "no holder seen in the part that was read: garbage or not read"
	case profile.HolderUncertain:
		return "not known: moved or changed meanwhile"
	case profile.HolderFar:
		return text + " <- no root seen"
	}
	if row.Roots > 1 {
		text += fmt.Sprintf(" (%d of them)", row.Roots)
	}
	return text
}

// PathText returns a way to a root as text.
func PathText(path []profile.HeapLink) string {
	steps := make([]string, len(path))
	for i, l := range path {
		steps[i] = linkText(l)
	}
	return strings.Join(steps, " <- ")
}

func linkText(l profile.HeapLink) (text string) {
	class := CleanName(shortClass(l.Class))
	switch l.Kind {
	case profile.LinkField:
		text = class + "." + CleanName(l.Field)
	case profile.LinkElement:
		text = class
	case profile.LinkLoaded:
		text = class + "." + CleanName(l.Field) + " (static, its loader is a " + CleanName(l.Loader) + ")"
	case profile.LinkClass:
		text = "the class of a " + class
	case profile.LinkMore:
		text = "..."
	case profile.LinkStatic:
		text = class + "." + CleanName(l.Field) + " (static)"
	case profile.LinkConstant:
		text = "constants of " + class
	case profile.LinkThread:
		text = "thread " + strconv.Quote(CleanName(cmp.Or(l.Thread, "?")))
	case profile.LinkStack:
		text = "perhaps the stack of thread " + strconv.Quote(CleanName(cmp.Or(l.Thread, "?")))
	case profile.LinkNative:
		text = "native code (JNI)"
	}
	if l.Times > 1 {
		text += fmt.Sprintf(" (%d times)", l.Times)
	}
	return text
}

// shortClass removes the packages java.util and java.lang, which are well known.
func shortClass(name string) string {
	for _, p := range []string{"java.util.concurrent.", "java.util.", "java.lang."} {
		if short, ok := strings.CutPrefix(name, p); ok && !strings.Contains(short, ".") {
			return short
		}
	}
	return name
}
