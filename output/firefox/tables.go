package firefox

import (
	"cmp"
	"path"

	"goprof/profile"
)

type texts struct {
	list []string
	of   map[string]int
}

func newTexts() texts { return texts{of: make(map[string]int)} }

func (t *texts) index(s string) int {
	i, ok := t.of[s]
	if !ok {
		i = len(t.list)
		t.list = append(t.list, s)
		t.of[s] = i
	}
	return i
}

const none = -1

type tables struct {
	funcs   []*profile.Func
	funcOf  map[*profile.Func]int
	sources []string
	source  map[string]int
	images  []string // each image is a lib and a resource
	builds  []string // build ids of images
	image   map[string]int
	names   []int // names of funcs, as numbers of strings
	files   []int // names of sources, as numbers of strings
	libs    []int // names of images, as numbers of strings
}

func (w *writer) makeTables() {
	t := &w.tables
	t.funcOf, t.source, t.image = make(map[*profile.Func]int), make(map[string]int), make(map[string]int)
	for i := range w.t.Frames {
		fn := w.t.Frames[i].Func
		if _, ok := t.funcOf[fn]; ok {
			continue
		}
		t.funcOf[fn] = len(t.funcs)
		t.funcs = append(t.funcs, fn)
		t.names = append(t.names, w.strings.index(cmp.Or(fn.Name, "[unknown]")))
		if _, ok := t.source[fn.File]; fn.File != "" && !ok {
			t.source[fn.File] = len(t.sources)
			t.sources = append(t.sources, fn.File)
			t.files = append(t.files, w.strings.index(fn.File))
		}
		if _, ok := t.image[fn.Module]; fn.Module != "" && !ok {
			t.image[fn.Module] = len(t.images)
			t.images = append(t.images, fn.Module)
			t.builds = append(t.builds, fn.Build)
			t.libs = append(t.libs, w.strings.index(path.Base(fn.Module)))
		}
	}
}

func (w *writer) libs() {
	w.List(len(w.tables.images), func(i int) {
		file := w.tables.images[i]
		w.Raw(`{"arch":"","name":`)
		w.Text(path.Base(file))
		w.Raw(`,"path":`)
		w.Text(file)
		w.Raw(`,"debugName":`)
		w.Text(path.Base(file))
		w.Raw(`,"debugPath":`)
		w.Text(file)
		w.Raw(`,"breakpadId":"","codeId":`)
		if build := w.tables.builds[i]; build != "" {
			w.Text(build)
		} else {
			w.Raw("null")
		}
		w.Raw("}")
	})
}

// column writes a column of a table. orNull writes negative numbers as null.
func (w *writer) column(name string, n int, value func(i int) int) {
	w.Raw(`,"` + name + `":`)
	w.List(n, func(i int) { w.Int(int64(value(i))) })
}

func (w *writer) orNull(name string, n int, value func(i int) int) {
	w.Raw(`,"` + name + `":`)
	w.List(n, func(i int) {
		if v := value(i); v < 0 {
			w.Raw("null")
		} else {
			w.Int(int64(v))
		}
	})
}

func (w *writer) repeatColumn(name string, n int, value string) {
	w.Raw(`,"` + name + `":`)
	w.List(n, func(int) { w.Raw(value) })
}

func (w *writer) shared() {
	w.Raw(`{"stackTable":`)
	w.stackTable()
	w.Raw(",\n\"frameTable\":")
	w.frameTable()
	w.Raw(",\n\"funcTable\":")
	w.funcTable()
	n := len(w.tables.images)
	w.begin(",\n\"resourceTable\":", n)
	w.column("name", n, func(i int) int { return w.tables.libs[i] })
	w.repeatColumn("host", n, "null")
	w.repeatColumn("type", n, "1") // a library
	w.column("lib", n, func(i int) int { return i })
	w.begin("},\n\"nativeSymbols\":", 0)
	for _, c := range []string{"libIndex", "address", "name", "functionSize"} {
		w.repeatColumn(c, 0, "")
	}
	n = len(w.tables.sources)
	w.begin("},\n\"sources\":", n)
	w.repeatColumn("id", n, "null")
	w.column("filename", n, func(i int) int { return w.tables.files[i] })
	w.repeatColumn("startLine", n, "1")
	w.repeatColumn("startColumn", n, "1")
	w.repeatColumn("sourceMapURL", n, "null")
	w.repeatColumn("content", n, "null")
	w.begin("},\n\"sourceLocationTable\":", 0)
	for _, c := range []string{"source", "line", "column"} {
		w.repeatColumn(c, 0, "")
	}
	w.Raw("},\n\"stringArray\":")
	w.List(len(w.strings.list), func(i int) { w.Text(w.strings.list[i]) })
	w.Raw("}")
}

func (w *writer) begin(what string, length int) {
	w.Raw(what + `{"length":`)
	w.Int(int64(length))
}

// stackTable has no row for the empty stack, which is null in the viewer. So its rows are our nodes without the first
// one.
func (w *writer) stackTable() {
	nodes := w.t.Nodes
	w.begin("", len(nodes)-1)
	w.column("frame", len(nodes)-1, func(i int) int { return int(nodes[i+1].Frame) })
	w.column("prefixOffset", len(nodes)-1, func(i int) int {
		if p := int(nodes[i+1].Parent); p > 0 {
			return i + 1 - p
		}
		return 0
	})
	w.Raw("}")
}

// frameTable has no addresses: for them, goprof would have to know where each native image was in memory.
func (w *writer) frameTable() {
	frames := w.t.Frames
	n := len(frames)
	at := make([]place, n)
	for i := range frames {
		at[i] = placeOf(&frames[i])
	}
	w.begin("", n)
	w.repeatColumn("address", n, "-1")
	w.column("inlineDepth", n, func(i int) int { return int(frames[i].Depth) })
	w.orNull("category", n, func(i int) int { return at[i].category })
	w.orNull("subcategory", n, func(i int) int {
		if at[i].category == inherited {
			return none
		}
		return at[i].sub
	})
	w.column("func", n, func(i int) int { return w.tables.funcOf[frames[i].Func] })
	w.repeatColumn("nativeSymbol", n, "null")
	w.repeatColumn("innerWindowID", n, "0")
	w.orNull("line", n, func(i int) int {
		if frames[i].Line <= 0 {
			return none
		}
		return int(frames[i].Line)
	})
	w.repeatColumn("column", n, "null")
	w.repeatColumn("originalLocation", n, "null")
	w.Raw("}")
}

func (w *writer) funcTable() {
	t := &w.tables
	n := len(t.funcs)
	w.begin("", n)
	w.column("name", n, func(i int) int { return t.names[i] })
	w.repeatColumn("isJS", n, "false")
	w.repeatColumn("relevantForJS", n, "false")
	w.column("resource", n, func(i int) int {
		if at, ok := t.image[t.funcs[i].Module]; ok {
			return at
		}
		return none
	})
	w.orNull("source", n, func(i int) int {
		if at, ok := t.source[t.funcs[i].File]; ok {
			return at
		}
		return none
	})
	w.repeatColumn("lineNumber", n, "null")
	w.repeatColumn("columnNumber", n, "null")
	w.repeatColumn("originalLocation", n, "null")
	w.Raw("}")
}
