package vmstructs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"goprof/process"
)

// A JVM of an unknown release exports tables that differ from the known ones. In every release, each entry that goprof
// uses is removed, renamed, made narrower or moved, one at a time. Then goprof either refuses the JVM and names the
// entry, or reports which capability is missing. All results that it still returns are true.

// mutation is a way in which an entry of a table differs from the known one.
type mutation struct {
	name  string
	apply func(t *tables, n fieldName)
	// told: goprof must report that a capability is missing.
	told bool
}

var mutations = []mutation{
	{"missing", func(t *tables, n fieldName) { delete(t.fields, n) }, true},
	{"renamed", func(t *tables, n fieldName) {
		t.fields[fieldName{n.typ, n.field + "_of_29"}] = t.fields[n]
		delete(t.fields, n)
	}, true},
	{"in another type", func(t *tables, n fieldName) {
		t.fields[fieldName{n.typ + "Base", n.field}] = t.fields[n]
		delete(t.fields, n)
	}, true},
	{"static instead, or not", func(t *tables, n fieldName) {
		f := t.fields[n]
		f.static = !f.static
		if f.static {
			f.addr = staticsAt - 8
		}
		t.fields[n] = f
	}, true},
	{"far away", func(t *tables, n fieldName) {
		f := t.fields[n]
		f.offset = maxOffset + 8
		t.fields[n] = f
	}, true},
	{"without an address", func(t *tables, n fieldName) {
		f := t.fields[n]
		f.addr = 0
		t.fields[n] = f
	}, true},
	{"of one byte", func(t *tables, n fieldName) {
		f := t.fields[n]
		f.typ = "u1"
		t.fields[n] = f
	}, false},
	{"of a type that is not known", func(t *tables, n fieldName) {
		f := t.fields[n]
		f.typ = "Atomic<Something>"
		t.fields[n] = f
	}, false},
}

// notTold are fields whose absence no user notices: other fields replace them, or the walk does not need them.
var notTold = []string{
	"MethodData._data[0]", "MethodData._method", // only guesses are worse
	"JavaThread._next", "Threads._thread_list", "ThreadsSMRSupport._java_thread_list", "ThreadsList._length",
	"ThreadsList._threads",
	"JavaFrameAnchor._last_Java_fp", "JavaThread._saved_exception_pc", "JavaThread._exception_pc", "Method._access_flags",
	"CodeCache._low_bound", "CodeCache._high_bound",
	"nmethod._entry_point", "nmethod._entry_offset", "nmethod._osr_entry_point", "nmethod._stub_offset",
	"CodeBlob._kind", "CodeBlob._data_offset", "CodeBlob._relocation_size", "CompiledMethod._deopt_mh_handler_begin",
	"nmethod._deopt_mh_handler_offset", "nmethod._deoptimize_mh_offset",
	"Array<u1>._data", "Array<u2>._data", // these belong to the other form of a class's list of fields
	"Symbol._vm_symbols[0]", "JDK_Version._current", "JDK_Version._major",
	"PerfMemory._start", "PerfMemory._capacity", // without these, old snapshots are lost, and counted (age.go)
	"OSThread._pthread_id", // threads that wait have no span, and the account reports that
	"OopHandle._obj", "ContinuationEntry._return_pc", "JavaThread._cont_entry",
	"ObjectMonitor._stack_locker",                           // without it, some owners are not known
	"Klass._super_check_offset", "Klass._primary_supers[0]", // one proof less that an object's class is a class
	// Without these, it is not known whether the JVM has turned its compilers off, and Health.GaveUp reports that.
	"JVMFlag._flags", "Flag._flags",
}

// clone returns a copy of the tables that a test may change.
func (t *tables) clone() *tables {
	return &tables{maps.Clone(t.fields), maps.Clone(t.sizes), maps.Clone(t.ints), maps.Clone(t.longs)}
}

// withFields returns a copy of the tables whose fields a test may change.
func (t *tables) withFields() *tables { return &tables{maps.Clone(t.fields), t.sizes, t.ints, t.longs} }

// withSizes returns a copy of the tables whose sizes a test may change.
func (t *tables) withSizes() *tables { return &tables{t.fields, maps.Clone(t.sizes), t.ints, t.longs} }

// resolveTold is resolve without two groups of fields: those about a JVM's health (layout_health.go), and those about
// the areas of its heap (heap_layout.go; without them the heap is not read). No JVM has all of these. A missing field
// of another collector is not reported, and a reader of such a fact gets the result that it is not known.
func resolveTold(t *tables) (*layout, *resolver) {
	l, r := resolve(t)
	l.health, l.areas, l.dump, l.memory = healthLayout{}, areasLayout{}, dumpLayout{}, memoryLayout{}
	return l, r
}

// sameLayout reports whether these tables result in this layout.
func sameLayout(t *tables, as *layout) bool {
	l, _ := resolveTold(t)
	return reflect.DeepEqual(l, as)
}

// usedFields returns the fields that change the layout.
func usedFields(j jdkTables) (used []fieldName) {
	whole, _ := resolveTold(j.tab)
	for n, f := range j.tab.fields {
		if f.static && strings.HasPrefix(n.typ, "StubRoutines") && n.field != "_call_stub_return_address" {
			continue // the number of stubs is not fixed, and each has its own name
		}
		delete(j.tab.fields, n)
		if l, _ := resolveTold(j.tab); !reflect.DeepEqual(l, whole) {
			used = append(used, n)
		}
		j.tab.fields[n] = f
	}
	slices.SortFunc(used, func(a, b fieldName) int { return strings.Compare(a.typ+"."+a.field, b.typ+"."+b.field) })
	return used
}

// answers returns all results for a JVM, without the errors.
func (w *hostileWorld) answers(vm *VM) map[string]string {
	said := map[string]string{}
	for _, pc := range w.pcs {
		at := fmt.Sprintf("%#x ", pc)
		if b, err := vm.Blob(pc); err == nil {
			said[at+"blob"] = fmt.Sprintf("%v %#x %#x %#x %d %d", b.Kind, b.Addr, b.Begin, b.End, b.FrameSize, b.FrameComplete)
			if b.Kind.IsNmethod() {
				said[at+"nmethod"] = fmt.Sprintf("%d %v %s", b.CompileID, b.OSR, b.Method.Full())
				said[at+"level"] = fmt.Sprint(b.Level)
				for _, exact := range []bool{true, false} {
					if scopes, err := vm.Scopes(b, pc, exact); err == nil {
						said[fmt.Sprint(at, "scopes", exact)] = tellWithoutLines(scopes)
					}
				}
			}
		}
		if c, ok := vm.Codelet(pc); ok {
			said[at+"codelet"] = fmt.Sprintf("%+v", c)
		}
	}
	if threads, err := vm.Threads(); err == nil {
		for _, th := range threads {
			said[fmt.Sprintf("thread %#x", th.Addr)] = fmt.Sprintf("%d %d %#x %#x", th.NSTID, th.State, th.StackBase,
				th.StackSize)
		}
	}
	if ret := vm.CallStubReturn(); ret != 0 {
		said["call stub"] = fmt.Sprintf("%#x", ret)
	}
	for _, name := range []string{"UseG1GC", "UseZGC"} {
		if f, ok := vm.Flag(name); ok {
			said[name] = f.String()
		}
	}
	if gc := vm.Collector(); gc != "" {
		said["collector"] = gc
	}
	off, size := vm.Side()
	side := make([]byte, size)
	if w.Read(w.thread+off, side) == nil {
		if u, err := vm.VFrames(&process.Snapshot{SideAddr: w.thread + off, Side: side}); err == nil && u.Frames != nil {
			said["deoptimized"] = tellWithoutLines(u.Frames)
		}
	}
	return said
}

// tellWithoutLines leaves out line numbers, which are a separate capability. The methods and their bytecode indexes
// must be right in any case.
func tellWithoutLines(scopes []Scope) string {
	var s []string
	for _, sc := range scopes {
		s = append(s, fmt.Sprintf("%s:%d", sc.Method.Full(), sc.BCI))
	}
	return strings.Join(s, " < ")
}

// putFlags makes a table of flags. All are set, except those with a minus sign.
func (w *hostileWorld) putFlags(names ...string) {
	l := &w.l.flags
	array := w.alloc((len(names) + 1) * int(l.size))
	w.put64(l.flags, array)
	w.put64(l.count, uint64(len(names)+1))
	for i, name := range names {
		entry, value := array+uint64(i)*l.size, w.alloc(8)
		name, off := strings.CutPrefix(name, "-")
		w.put(value, map[bool]byte{false: 1}[off])
		w.put64(entry+uint64(l.name), w.cstring(name))
		w.put64(entry+uint64(l.addr), value)
		if l.typeIsText {
			w.put64(entry+uint64(l.typ), w.cstring("bool"))
		} else {
			w.put32(entry+uint64(l.typ), 0)
		}
	}
}

// openAs opens the world as a JVM with other tables. It does what Open does after the tables are read.
func (w *hostileWorld) openAs(tab *tables) (*VM, *resolver, error) {
	l, r := resolveTold(tab)
	if lost := r.essentials(); len(lost) > 0 {
		return nil, r, &Unsupported{lost}
	}
	l.method.unsigned5X = w.l.method.unsigned5X
	vm := newVM(w, l)
	vm.missing = r.report()
	if err := vm.openCodeCache(); err != nil {
		return nil, r, err
	}
	return vm, r, vm.openStubs()
}

func TestUnknownTables(t *testing.T) {
	for _, j := range someTables(t) {
		t.Run(j.name, func(t *testing.T) {
			w := newHostileWorld(t, j)
			w.putFlags("UseG1GC", "UseZGC")
			vm, _, err := w.openAs(j.tab)
			if err != nil {
				t.Fatal(err)
			}
			truth := w.answers(vm)
			if truth["UseZGC"] != "true" || truth["collector"] != "G1" {
				t.Fatalf("%q", truth)
			}
			if len(truth) < 20 {
				t.Fatalf("the world says no more than %q", truth)
			}
			used := usedFields(j)
			before, _ := resolveTold(j.tab)
			refused, told, served := 0, 0, 0
			for _, n := range used {
				for _, m := range mutations {
					tab := j.tab.withFields()
					m.apply(tab, n)
					vm, r, err := w.openAs(tab)
					report := strings.Join(r.report(), "; ")
					name := n.typ + "." + n.field
					switch {
					case err != nil:
						refused++
						if !strings.Contains(err.Error(), name) && !coveredBy(n, err.Error()) {
							t.Errorf("%s, %s: refused without its name: %v", name, m.name, err)
						}
						continue
					case report != "":
						told++
						if !strings.Contains(report, name) && !coveredBy(n, report) {
							t.Errorf("%s, %s: told as %s", name, m.name, report)
						}
					default:
						served++
						if m.told && !slices.Contains(notTold, name) && !zgc(n) && !wellKnownClass(n) && !sameLayout(tab, before) {
							t.Errorf("%s, %s: nothing is told", name, m.name)
						}
					}
					whole := w.l
					w.l = vm.l
					if err := w.tour(w, nil); err != nil { // the other functions do not panic
						t.Errorf("%s, %s: %v", name, m.name, err)
					}
					w.l = whole
					for what, says := range w.answers(vm) {
						if truth[what] != says && !(strings.Contains(report, capScopes) && isOwnerOf(says, truth[what])) {
							t.Errorf("%s, %s: %s is %q, not %q", name, m.name, what, says, truth[what])
						}
					}
				}
			}
			t.Logf("%d fields: %d times refused, %d times told what is missing, %d times not needed", len(used), refused, told,
				served)
			if len(used) < 60 || refused == 0 || told == 0 {
				t.Error("so few fields are used?")
			}
		})
	}
}

// isOwnerOf: if inlined frames are a missing capability, goprof knows only the method that owns the code.
func isOwnerOf(says, truth string) bool {
	owner, ok := strings.CutSuffix(says, ":-1")
	return ok && strings.Contains(truth[strings.LastIndex(truth, " ")+1:], owner+":")
}

// coveredBy: some fields are only useful together. The report names one of them.
func coveredBy(n fieldName, report string) bool {
	for group, names := range map[string]string{
		"nmethod._scopes_data_offset": "nmethod._dependencies_offset nmethod._metadata_offset " +
			"CompiledMethod._scopes_data_begin nmethod._scopes_data_begin " +
			"nmethod._immutable_data nmethod._immutable_data_size CodeBlob._mutable_data CodeBlob._mutable_data_size " +
			"CodeBlob._relocation_size nmethod._scopes_data_offset",
		"nmethod._verified_entry_offset": "nmethod._verified_entry_point",
		"nmethod._deopt_handler_offset": "CompiledMethod._deopt_handler_begin " +
			"nmethod._deopt_handler_entry_offset nmethod._deoptimize_offset",
		"ThreadsSMRSupport._java_thread_list": "Threads._thread_list JavaThread._next ThreadsList._length " +
			"ThreadsList._threads",
		"InstanceKlass._fieldinfo_stream": "InstanceKlass._fields InstanceKlass._java_fields_count " +
			"Array<u1>._data Array<u2>._data",
		"ConstantPool._source_file_name_index": "InstanceKlass._source_file_name_index",
		"CodeBlob._code_begin|CodeBlob._code_offset": "CodeBlob._code_begin CodeBlob._code_end CodeBlob._code_offset " +
			"CodeBlob._data_offset",
		"CodeCache._heaps": "CodeCache._heap",
	} {
		if strings.Contains(report, group) && slices.Contains(strings.Fields(names), n.typ+"."+n.field) {
			return true
		}
	}
	return false
}

// zgc: goprof reads the masks of ZGC if the JVM uses ZGC. Without the masks, reading a name returns ErrMoved, or a name
// that is checked.
func zgc(n fieldName) bool {
	return len(n.typ) > 1 && (n.typ[0] == 'Z' || n.typ[0] == 'X') && n.typ[1] >= 'A' && n.typ[1] <= 'Z'
}

func wellKnownClass(n fieldName) bool { return strings.Contains(n.field, "_klass_knum") }

// families are types with fields in the same objects. Their fields move together.
var families = [][]string{
	{"CodeBlob", "CompiledMethod", "nmethod", "RuntimeStub", "BufferBlob", "UpcallStub"},
	{"Thread", "JavaThread", "CompilerThread", "NamedThread"},
	{"Klass", "InstanceKlass"},
	{"HeapBlock", "HeapBlock::Header"},
	{"vframeArray", "vframeArrayElement"},
	{"Method"}, {"ConstMethod"}, {"ConstantPool"}, {"Symbol"}, {"CodeHeap"}, {"VirtualSpace"}, {"OSThread"},
	{"ThreadsList"}, {"StubQueue"},
	{"InterpreterCodelet"}, {"GrowableArrayBase", "GenericGrowableArray"}, {"GrowableArray<int>"}, {"JavaFrameAnchor"},
	{"Array<int>"},
}

// TestMovedFields: goprof finds fields at any offset in the tables. One family of types after the other is made larger,
// and its fields are moved to higher offsets.
func TestMovedFields(t *testing.T) {
	const further = 16
	for _, j := range loadTables(t) {
		t.Run(j.name, func(t *testing.T) {
			w := newHostileWorld(t, j)
			vm, _, err := w.openAs(j.tab)
			if err != nil {
				t.Fatal(err)
			}
			truth := len(w.answers(vm))
			for _, family := range families {
				tab := j.tab.clone()
				moved := 0
				for n, f := range tab.fields {
					if slices.Contains(family, n.typ) && !f.static {
						f.offset += further
						tab.fields[n] = f
						moved++
					}
				}
				if moved == 0 {
					continue // this type belongs to another release
				}
				for _, typ := range family {
					if tab.sizes[typ] != 0 {
						tab.sizes[typ] += further
					}
				}
				other := newHostileWorld(t, jdkTables{j.name, tab})
				vm, r, err := other.openAs(tab)
				if err != nil || len(r.report()) != 0 {
					t.Errorf("%s: %v %q", family, err, r.report())
					continue
				}
				if got := len(other.answers(vm)); got != truth {
					t.Errorf("%s: %d answers, not %d", family, got, truth)
				}
			}
		})
	}
}

// TestUnknownSizes: a type with an unknown or impossible size counts as missing.
func TestUnknownSizes(t *testing.T) {
	for _, j := range someTables(t) {
		whole, _ := resolveTold(j.tab)
		used := 0
		for _, typ := range slices.Sorted(maps.Keys(j.tab.sizes)) {
			for _, size := range []uint64{0, maxOffset + 1} {
				tab := j.tab.withSizes()
				tab.sizes[typ] = size
				if size == 0 {
					delete(tab.sizes, typ)
				}
				l, r := resolveTold(tab)
				if reflect.DeepEqual(l, whole) {
					continue
				}
				used++
				report := strings.Join(r.report(), "; ")
				if typ == "Flag" { // the type shows that this is JDK 8
					report += typ
				}
				if !strings.Contains(report, typ) && !slices.Contains(numbers, typ) && !zgc(fieldName{typ: typ}) {
					t.Errorf("%s, sizeof %s %d: %q is told", j.name, typ, size, report)
				}
			}
		}
		if used < 10 {
			t.Errorf("%s: %d sizes are used", j.name, used)
		}
	}
}

// numbers are types of which only the width is used, and where it is used, it is also known from elsewhere.
var numbers = []string{"int", "u1", "u2", "u4", "size_t", "int16_t", "uint32_t", "unsigned int", "bool",
	"AccessFlags", "CompLevel"}
