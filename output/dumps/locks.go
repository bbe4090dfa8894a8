package dumps

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/contention"
)

// These are the fields of "goprof locks --json".
type (
	jsonLocks struct {
		Deadlocks [][]jsonDeadlocked `json:"deadlocks"`
		Threads   []jsonLocker       `json:"threads"`
	}
	jsonDeadlocked struct {
		TID      int      `json:"tid"`
		Name     string   `json:"name"`
		Virtual  uint64   `json:"virtual,omitempty"`
		WaitsFor jsonLock `json:"waits_for"`
		jsonOwner
	}
	jsonLocker struct {
		TID      int         `json:"tid"`
		Name     string      `json:"name"`
		Virtual  uint64      `json:"virtual,omitempty"`
		Holds    []jsonHeld  `json:"holds"`
		WaitsFor *jsonWanted `json:"waits_for,omitempty"`
		// Unconfirmed: the thread seems to wait for another thread's lock, but it could not be confirmed which.
		Unconfirmed bool `json:"unconfirmed,omitempty"`
	}
	jsonLock struct {
		Class string `json:"class"`
		ID    string `json:"id"`
	}
	jsonHeld struct {
		jsonLock
		Kind  string `json:"kind"`
		Frame *int   `json:"frame,omitempty"` // an index into the thread's frames in goprof dump, topmost first
	}
	jsonWanted struct {
		jsonLock
		Kind  string `json:"kind"`
		How   string `json:"how"`
		Timed bool   `json:"timed,omitempty"`
		jsonOwner
	}
	// jsonOwner is left out if the owner is not known. Owner is 0 for a virtual thread without a carrier.
	jsonOwner struct {
		Owner        *int   `json:"owner,omitempty"` // tid
		OwnerVirtual uint64 `json:"owner_virtual,omitempty"`
	}
)

// LocksJSON writes which threads wait for which, as JSON.
func LocksJSON(to io.Writer, threads []profile.ThreadDump, g *contention.Graph) error {
	out := jsonLocks{Deadlocks: make([][]jsonDeadlocked, 0, len(g.Deadlocks)), Threads: []jsonLocker{}}
	for _, cycle := range g.Deadlocks {
		var one []jsonDeadlocked
		for _, i := range cycle {
			t := &threads[i]
			one = append(one, jsonDeadlocked{TID: t.TID, Name: output.Printable(t.Name), Virtual: virtualID(t),
				WaitsFor: lockJSON(&t.WaitsFor.Lock), jsonOwner: ownerJSON(&t.WaitsFor.Owner)})
		}
		out.Deadlocks = append(out.Deadlocks, one)
	}
	for i := range threads {
		if t := &threads[i]; t.Err == "" || len(t.Holds) > 0 || t.WaitsFor != nil {
			out.Threads = append(out.Threads, lockerJSON(t))
		}
	}
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	return e.Encode(&out)
}

func lockerJSON(t *profile.ThreadDump) jsonLocker {
	j := jsonLocker{TID: t.TID, Name: output.Printable(t.Name), Virtual: virtualID(t),
		Holds:       make([]jsonHeld, 0, len(t.Holds)),
		Unconfirmed: t.Unconfirmed}
	j.Holds = append(j.Holds, heldJSON(t)...)
	if w := t.WaitsFor; w != nil {
		j.WaitsFor = &jsonWanted{jsonLock: lockJSON(&w.Lock), Kind: lockKind(w.Kind), How: lockWait(w.How), Timed: w.Timed,
			jsonOwner: ownerJSON(&w.Owner)}
	}
	return j
}

func lockJSON(l *profile.Lock) jsonLock { return jsonLock{output.Printable(l.Class), address(l.ID)} }

func ownerJSON(o *profile.ThreadRef) (j jsonOwner) {
	if *o != (profile.ThreadRef{}) {
		j.Owner, j.OwnerVirtual = &o.TID, o.Virtual
	}
	return j
}

// virtualID is the number of the virtual thread itself, or of the one that the thread ran. It is 0 if there was none.
func virtualID(t *profile.ThreadDump) uint64 {
	if t.Virtual != nil {
		return t.Virtual.ID
	}
	return t.Stack.Virtual.ID
}

var lockKinds = map[profile.LockKind]string{profile.Monitor: "monitor", profile.Exclusive: "exclusive",
	profile.Shared: "shared", profile.ClassInit: "class", profile.Task: "task"}

func lockKind(k profile.LockKind) string { return cmp.Or(lockKinds[k], "unownable") }

var lockWaits = map[profile.LockWait]string{profile.ToEnter: "enter", profile.ToNotify: "notify",
	profile.ToInitialize: "initialize"}

func lockWait(w profile.LockWait) string { return cmp.Or(lockWaits[w], "unpark") }

// LocksText writes which threads wait for which, for people: deadlocks, chains, and the locks that threads hold.
func LocksText(to io.Writer, threads []profile.ThreadDump, g *contention.Graph) error {
	w := &locksText{Writer: bufio.NewWriter(to), threads: threads}
	w.deadlocks(g)
	w.chains(g)
	w.unconfirmed()
	w.held()
	if w.sections == 0 {
		fmt.Fprintln(w, "No thread waits for a lock that another one holds, and none holds a monitor.")
	}
	return w.Flush()
}

type locksText struct {
	*bufio.Writer
	threads  []profile.ThreadDump
	sections int
}

func (w *locksText) section(format string, args ...any) {
	if w.sections++; w.sections > 1 {
		w.WriteByte('\n')
	}
	fmt.Fprintf(w, format+"\n", args...)
}

func (w *locksText) deadlocks(g *contention.Graph) {
	for n, cycle := range g.Deadlocks {
		who := fmt.Sprintf("%d threads, each waits for the next", len(cycle))
		if len(cycle) == 1 {
			who = "a thread that waits for itself"
		}
		w.section("DEADLOCK %d of %d: %s", n+1, len(g.Deadlocks), who)
		for _, i := range cycle {
			t := &w.threads[i]
			fmt.Fprintf(w, "  %s\n    %s\n", title(t), wantedText(t.WaitsFor, true))
			w.stack(t)
		}
	}
}

func (w *locksText) chains(g *contention.Graph) {
	if len(g.Chains) == 0 {
		return
	}
	w.section("WAITING: who holds or computes what others wait for, the longest queue first")
	for _, root := range g.Chains {
		t := &w.threads[root.Thread]
		fmt.Fprintf(w, "  %s, %s behind it", title(t), output.Count(root.Behind, "thread"))
		if root.Deadlock < 0 {
			w.WriteByte('\n')
			w.stack(t)
			w.notOnStack(t)
		} else {
			fmt.Fprintf(w, " (deadlock %d)\n", root.Deadlock+1)
		}
		w.waiters(root, 1)
	}
}

// notOnStack names the held monitors that no frame of the stack has taken. The stack was read before the locks.
func (w *locksText) notOnStack(t *profile.ThreadDump) {
	for i := range t.Holds {
		if h := &t.Holds[i]; h.Frame < 0 && h.Kind == profile.Monitor && t.Err == "" {
			fmt.Fprintf(w, "      holds %s; no frame above took it: this stack may be a moment older\n", lockText(&h.Lock))
		}
	}
}

// maxIndent bounds the indentation of a line.
const maxIndent = 40

func (w *locksText) waiters(n *contention.Node, depth int) {
	for _, below := range n.Waiting {
		t := &w.threads[below.Thread]
		fmt.Fprintf(w, "  %s- %s %s", strings.Repeat("  ", min(depth, maxIndent)), title(t), wantedText(t.WaitsFor, false))
		if below.Behind > 0 {
			fmt.Fprintf(w, ", %s behind it", output.Count(below.Behind, "thread"))
		}
		w.WriteByte('\n')
		w.waiters(below, depth+1)
	}
}

// unconfirmed lists the threads that may wait for others, but for which that is not known.
func (w *locksText) unconfirmed() {
	if profile.Unconfirmed(w.threads) == 0 {
		return
	}
	w.section("NOT CONFIRMED: these seem to wait for locks of others; a deadlock of theirs would be missing")
	for i := range w.threads {
		if t := &w.threads[i]; t.Unconfirmed {
			fmt.Fprintf(w, "  %s\n", title(t))
			w.stack(t)
		}
	}
}

func (w *locksText) held() {
	said := false
	for i := range w.threads {
		t := &w.threads[i]
		if len(t.Holds) == 0 {
			continue
		}
		if !said {
			w.section("HELD")
			said = true
		}
		fmt.Fprintf(w, "  %s\n", title(t))
		for k := range t.Holds {
			h := &t.Holds[k]
			fmt.Fprintf(w, "    %s%s\n", lockText(&h.Lock), w.takenAt(t, h.Frame))
		}
	}
}

func (w *locksText) takenAt(t *profile.ThreadDump, frame int) string {
	if frame < 0 || frame >= len(t.Stack.Frames) || t.Stack.Frames[frame].Func == nil {
		return ""
	}
	f := &t.Stack.Frames[frame]
	return fmt.Sprintf("  taken in %s (%s)", output.CleanName(f.Func.Name), place(f, f.Func))
}

func (w *locksText) stack(t *profile.ThreadDump) {
	if t.Err != "" {
		fmt.Fprintf(w, "      (no stack: %s)\n", output.CleanName(t.Err))
		return
	}
	for i := range t.Stack.Frames {
		f := &t.Stack.Frames[i]
		if f.Func == nil || !f.Kind.Java() {
			continue
		}
		fmt.Fprintf(w, "      at %s (%s)\n", output.CleanName(f.Func.Name), place(f, f.Func))
		for k := range t.Holds {
			if t.Holds[k].Frame == i {
				fmt.Fprintf(w, "         holds %s\n", lockText(&t.Holds[k].Lock))
			}
		}
	}
}

func title(t *profile.ThreadDump) string {
	name := fmt.Sprintf("\"%s\" tid=%d", output.CleanName(t.Name), t.TID)
	switch {
	case t.Virtual != nil:
		name = virtualTitle(*t.Virtual)
	case t.Stack.Virtual.ID != 0:
		name = fmt.Sprintf("%s on %s", virtualTitle(t.Stack.Virtual), name)
	}
	if t.State != "" {
		name += " " + output.CleanName(t.State)
	}
	return name
}

func wantedText(l *profile.WantedLock, withOwner bool) string {
	how := "is parked for"
	switch {
	case l.How == profile.ToEnter:
		how = "waits to enter"
	case l.How == profile.ToNotify:
		how = "waits to be notified by"
	case l.OfAnother(), l.Kind == profile.Task:
		how = "waits for"
	}
	text := how + " " + lockText(&l.Lock)
	if l.Timed {
		text += " (not for ever)"
	}
	switch {
	case withOwner && (l.Kind == profile.ClassInit || l.Kind == profile.Task):
		text += ", which " + refText(&l.Owner) + " runs"
	case withOwner:
		text += ", which " + refText(&l.Owner) + " has"
	}
	return text
}

func lockText(l *profile.Lock) string {
	class := cmp.Or(output.CleanName(l.Class), "an object that the collector moves")
	if l.Kind == profile.Task {
		class = strings.TrimSuffix(class, "$Signaller") // a $Signaller waits for a CompletableFuture
	}
	return fmt.Sprintf("%s%s <%s>", lockNouns[l.Kind], class, address(l.ID))
}

var lockNouns = map[profile.LockKind]string{profile.Monitor: "monitor ", profile.Exclusive: "lock ",
	profile.Shared: "read lock ", profile.ClassInit: "the initialisation of class ", profile.Task: "the result of "}

// refText names a thread, with as much of its name as fits on a line.
func refText(r *profile.ThreadRef) string {
	named := *r
	if named.Virtual == 0 || named.Name != "" {
		named.Name = output.CleanName(named.Name)
	}
	return named.String()
}
