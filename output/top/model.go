package top

import (
	"slices"
	"sort"
	"strings"

	"goprof/profile"
)

// Model is what the user has chosen to show. It is not safe for concurrent use.
type Model struct {
	shown  *Reading // nil before the first one
	latest *Reading // the newest one while the screen is frozen
	frozen bool

	order    Order
	reversed bool
	byTotal  bool // sort methods by total
	pane     pane
	help     bool

	filter string
	typing bool

	threads  []Thread // the shown ones, in order
	methods  []Method
	selected int // tid; 0 is the first thread
	scrolled int // number of threads above the first drawn one
	visible  int // number of threads in the last drawing

	stack     *Stack
	stackFrom int // number of the stack's lines above the first drawn one
	message   string
	recording string
}

// Stack is the stack of the thread that the user has chosen.
type Stack struct {
	TID    int
	Frames []profile.Frame
	State  string
	Err    string // why there is none
	Coming bool   // it was asked for
}

// pane is which tables are shown.
type pane int

const (
	both pane = iota
	threadsOnly
	methodsOnly

	numPanes
)

// ActionKind is a request of the user that the model cannot do itself.
type ActionKind int

const (
	None ActionKind = iota
	Quit
	Suspend // stop goprof, as Ctrl-Z does
	Dump    // write a dump
	Record  // begin or end a recording
	Look    // the stack of TID is wanted from now on; with 0, no stack
)

// Action is a request of the user.
type Action struct {
	Kind ActionKind
	TID  int
}

func New() *Model { return &Model{} }

// Show takes the next reading. A frozen screen does not change.
func (m *Model) Show(r *Reading) {
	m.latest = r
	if !m.frozen {
		m.shown = r
		m.arrange()
	}
}

// ShowStack takes the stack of a thread that Look has asked for.
func (m *Model) ShowStack(s *Stack) {
	if m.stack != nil && m.stack.TID == s.TID && (!m.frozen || m.stack.Coming) {
		m.stack = s
	}
}

// Say shows a line until the next key.
func (m *Model) Say(text string) { m.message = clean(text) }

// Recording sets the name of the file that is being recorded. It is empty if there is no recording.
func (m *Model) Recording(file string) { m.recording = clean(file) }

// Key takes a key, by name ("up", "enter", "ctrl+c"), and the text that it types.
func (m *Model) Key(key, text string) Action {
	m.message = ""
	switch {
	case key == "ctrl+c":
		return Action{Kind: Quit}
	case key == "ctrl+z":
		return Action{Kind: Suspend}
	case m.typing:
		m.typeFilter(key, text)
		return Action{}
	case m.help:
		m.help = false
		return Action{}
	}
	if act, ok := actions[key]; ok {
		return Action{Kind: act}
	}
	if m.stack != nil {
		return m.stackKey(key)
	}
	return m.tableKey(key)
}

// actions are the requests by keys that work on every screen.
var actions = map[string]ActionKind{"q": Quit, "d": Dump, "r": Record}

var orders = map[string]Order{"c": ByCPU, "a": ByAlloc, "n": ByName, "s": ByState}

func (m *Model) tableKey(key string) Action {
	if order, ok := orders[key]; ok {
		m.reversed = order == m.order && !m.reversed
		m.order = order
		m.arrange()
		return Action{}
	}
	switch key {
	case "?", "h":
		m.help = true
	case "space":
		m.freeze()
	case "t":
		m.byTotal = !m.byTotal
		m.arrange()
	case "tab", "m":
		m.pane = (m.pane + 1) % numPanes
	case "/":
		m.typing = true
	case "esc":
		m.filter = ""
		m.arrange()
	case "enter":
		return m.openStack()
	default:
		m.move(key)
	}
	return Action{}
}

func (m *Model) freeze() {
	if m.frozen = !m.frozen; !m.frozen && m.latest != nil {
		m.shown = m.latest
		m.arrange()
	}
}

const maxFilter = 100

func (m *Model) typeFilter(key, text string) {
	switch key {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	case "ctrl+u":
		m.filter = ""
	default:
		if text = clean(text); len(m.filter)+len(text) <= maxFilter {
			m.filter += text
		}
	}
	m.arrange()
}

// arrange sorts and filters the shown lists.
func (m *Model) arrange() {
	if m.shown == nil {
		return
	}
	m.threads = sortedThreads(m.shown.Threads, m.order, m.reversed)
	m.methods = slices.Clone(m.shown.Methods)
	if m.byTotal {
		sort.SliceStable(m.methods, func(i, j int) bool { return m.methods[i].Total > m.methods[j].Total })
	}
	if m.filter == "" {
		return
	}
	want := strings.ToLower(m.filter)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), want) }
	m.threads = slices.DeleteFunc(m.threads, func(t Thread) bool { return !has(t.Name) && !has(t.Frame) && !has(t.State) })
	m.methods = slices.DeleteFunc(m.methods, func(c Method) bool { return !has(c.Name) })
}

// at returns the index of the selected thread.
func (m *Model) at() int {
	return max(slices.IndexFunc(m.threads, func(t Thread) bool { return t.TID == m.selected }), 0)
}

func (m *Model) move(key string) {
	if len(m.threads) == 0 {
		return
	}
	to := m.at()
	switch key {
	case "up", "k":
		to--
	case "down", "j":
		to++
	case "pgup":
		to -= max(m.visible, 1)
	case "pgdown":
		to += max(m.visible, 1)
	case "home", "g":
		m.selected = 0 // the selection stays on the first one
		return
	case "end", "G":
		to = len(m.threads) - 1
	default:
		return
	}
	m.selected = m.threads[min(max(to, 0), len(m.threads)-1)].TID
}

func (m *Model) openStack() Action {
	if len(m.threads) == 0 {
		return Action{}
	}
	tid := m.threads[m.at()].TID
	m.selected, m.stackFrom = tid, 0
	m.stack = &Stack{TID: tid, Coming: true}
	return Action{Kind: Look, TID: tid}
}

func (m *Model) stackKey(key string) Action {
	page := max(m.visible, 1)
	switch key {
	case "esc", "enter", "backspace", "left":
		m.stack = nil
		return Action{Kind: Look}
	case "?", "h":
		m.help = true
	case "space":
		m.freeze()
	case "up", "k":
		m.stackFrom--
	case "down", "j":
		m.stackFrom++
	case "pgup":
		m.stackFrom -= page
	case "pgdown":
		m.stackFrom += page
	case "home", "g":
		m.stackFrom = 0
	case "end", "G":
		m.stackFrom = len(m.stack.Frames)
	}
	m.stackFrom = min(max(m.stackFrom, 0), max(len(m.stack.Frames)-1, 0))
	return Action{}
}
