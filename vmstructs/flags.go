package vmstructs

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"
)

type FlagKind uint8

const (
	BoolFlag   FlagKind = iota + 1
	IntFlag             // int, intx
	UintFlag            // uint, uintx, uint64_t, size_t
	DoubleFlag          // double
	StringFlag          // ccstr, ccstrlist
)

// Flag is a -XX flag and its present value.
type Flag struct {
	Name   string
	Kind   FlagKind
	Bool   bool
	Int    int64
	Uint   uint64
	Double float64
	Str    string // also empty if the flag is a null pointer
}

// String writes the value as -XX:+PrintFlagsFinal does.
func (f Flag) String() string {
	switch f.Kind {
	case BoolFlag:
		return strconv.FormatBool(f.Bool)
	case IntFlag:
		return strconv.FormatInt(f.Int, 10)
	case UintFlag:
		return strconv.FormatUint(f.Uint, 10)
	case DoubleFlag:
		return strconv.FormatFloat(f.Double, 'f', -1, 64)
	}
	return f.Str
}

const (
	maxFlags     = 8192 // JDK 27 has about 1,500
	maxFlagText  = 4096
	maxArguments = 4096
	maxArgument  = 64 << 10
)

// flagType is the C++ type of a flag: the number of bytes and their meaning.
type flagType struct {
	kind FlagKind
	size uint8
}

// flagTypes has the type names of JDK 8 to 16, in which Flag::_type is a string.
var flagTypes = map[string]flagType{
	"bool": {BoolFlag, 1}, "int": {IntFlag, 4}, "uint": {UintFlag, 4}, "intx": {IntFlag, 8}, "uintx": {UintFlag, 8},
	"uint64_t": {UintFlag, 8}, "size_t": {UintFlag, 8}, "double": {DoubleFlag, 8},
	"ccstr": {StringFlag, 8}, "ccstrlist": {StringFlag, 8},
}

// flagNumbers has the names of types by the numbers of JVMFlag::FlagType, which later releases use (flags/jvmFlag.hpp,
// JVM_FLAG_NON_STRING_TYPES_DO, and the two string types).
var flagNumbers = [...]string{"bool", "int", "uint", "intx", "uintx", "uint64_t", "size_t", "double", "ccstr",
	"ccstrlist"}

// flagTable finds a flag's entry by its name. It is read at its first use (see ForgetFlags).
type flagTable struct {
	read    bool
	entries []byte
	byName  map[string]int
}

// Flag returns a flag of the JVM and its present value.
func (vm *VM) Flag(name string) (Flag, bool) {
	t := &vm.flagTab
	if !t.read {
		t.read = true
		vm.readFlags()
	}
	at, ok := t.byName[name]
	if !ok {
		return Flag{}, false
	}
	l := &vm.l.flags
	entry := t.entries[at:]
	typ, ok := vm.flagType(entry)
	if !ok {
		return Flag{}, false
	}
	var buf [8]byte
	if vm.mem.Bytes(l.addr.u64(entry), buf[:typ.size]) != nil {
		return Flag{}, false
	}
	return vm.flagValue(name, typ, buf)
}

// ForgetFlags drops the table, a quarter of a megabyte. It is read again at its next use.
func (vm *VM) ForgetFlags() { vm.flagTab = flagTable{} }

// withFlags calls ask, which uses flags. If the table did not exist before, withFlags drops it afterwards.
func (vm *VM) withFlags(ask func()) {
	if had := vm.flagTab.read; !had {
		defer vm.ForgetFlags()
	}
	ask()
}

func (vm *VM) flagValue(name string, typ flagType, buf [8]byte) (Flag, bool) {
	f := Flag{Name: name, Kind: typ.kind}
	v := binary.LittleEndian.Uint64(buf[:])
	switch typ.kind {
	case BoolFlag:
		f.Bool = v != 0
	case IntFlag:
		f.Int = int64(v)
		if typ.size == 4 {
			f.Int = int64(int32(v))
		}
	case UintFlag:
		f.Uint = v
	case DoubleFlag:
		f.Double = math.Float64frombits(v)
	case StringFlag:
		if v == 0 {
			return f, true
		}
		s, err := vm.mem.CString(v, maxFlagText)
		if err != nil {
			return f, false
		}
		f.Str = cleanText(s)
	}
	return f, true
}

func (vm *VM) flagType(entry []byte) (flagType, bool) {
	l := &vm.l.flags
	if !l.typeIsText {
		n := l.typ.u32(entry)
		if n >= uint32(len(flagNumbers)) {
			return flagType{}, false
		}
		return flagTypes[flagNumbers[n]], true
	}
	s, err := vm.mem.CString(l.typ.u64(entry), 32)
	if err != nil {
		return flagType{}, false
	}
	typ, ok := flagTypes[s]
	return typ, ok
}

// readFlags reads the array of flags and their names (runtime/flags/jvmFlag.cpp, flagTable).
func (vm *VM) readFlags() {
	l := &vm.l.flags
	if l.flags == 0 || l.count == 0 || l.size < uint64(l.span) || !l.name.ok() || !l.addr.ok() || !l.typ.ok() {
		return
	}
	array, err := vm.mem.Ptr(l.flags)
	if err != nil {
		return
	}
	count, err := vm.mem.U64(l.count)
	if err != nil || count == 0 || count > maxFlags {
		return
	}
	entries := make([]byte, count*l.size)
	if vm.mem.Bytes(array, entries) != nil {
		return
	}
	var text textPages
	for at := 0; at < len(entries); at += int(l.size) {
		text.want(l.name.u64(entries[at:]))
	}
	if text.read(vm.t) != nil {
		return
	}
	t := &vm.flagTab
	t.entries, t.byName = entries, make(map[string]int, count)
	for at := 0; at < len(entries); at += int(l.size) {
		// The last entry has no name.
		if name, ok := text.str(l.name.u64(entries[at:])); ok && name != "" {
			t.byName[name] = at
		}
	}
}

// The low bits of a flag's _flags are its origin (JVMFlag::VALUE_ORIGIN_MASK; the same in 8, globals.hpp).
const (
	flagOriginMask = 15
	flagDefault    = 0
)

// flagOrigin returns a flag's origin at the time at which the flags were first read.
func (vm *VM) flagOrigin(name string) (origin uint32, ok bool) {
	if _, ok := vm.Flag(name); !ok || !vm.l.flags.origin.ok() {
		return 0, false
	}
	entry := vm.flagTab.entries[vm.flagTab.byName[name]:]
	return vm.l.flags.origin.u32(entry) & flagOriginMask, true
}

// flagOrigins are the names of the origins (JVMFlagOrigin; in 8 Flag::Flags, with the same numbers).
var flagOrigins = [...]string{"default", "command line", "environment", "config file", "management", "ergonomic",
	"attach on demand", "internal", "jimage"}

// SetFlag is a flag that does not have its default value, and its origin.
type SetFlag struct {
	Flag
	Origin string
}

// SetFlags lists the flags that do not have their default values, by name. known is false if the JVM exports no
// origins.
func (vm *VM) SetFlags() (all []SetFlag, known bool) {
	vm.Flag("")
	for _, name := range slices.Sorted(maps.Keys(vm.flagTab.byName)) {
		origin, ok := vm.flagOrigin(name)
		known = known || ok
		if !ok || origin == flagDefault {
			continue
		}
		set := SetFlag{Origin: "origin " + strconv.Itoa(int(origin))}
		if int(origin) < len(flagOrigins) {
			set.Origin = flagOrigins[origin]
		}
		if set.Flag, ok = vm.Flag(name); ok {
			all = append(all, set)
		}
	}
	return all, known
}

func (vm *VM) flagOn(name string) bool {
	f, ok := vm.Flag(name)
	return ok && f.Bool
}

// Collector names the garbage collector, by the flag that is set.
func (vm *VM) Collector() string {
	for _, c := range []struct{ flag, name string }{
		{"UseG1GC", "G1"}, {"UseParallelGC", "Parallel"}, {"UseZGC", "ZGC"}, {"UseShenandoahGC", "Shenandoah"},
		{"UseConcMarkSweepGC", "CMS"}, {"UseEpsilonGC", "Epsilon"}, {"UseSerialGC", "Serial"},
		{"UseParallelOldGC", "Parallel"},
	} {
		if vm.flagOn(c.flag) {
			return c.name
		}
	}
	return ""
}

// JavaCommand returns the main class or jar and its arguments, as the launcher passed them.
func (vm *VM) JavaCommand() string {
	s, _ := vm.textAt(vm.l.flags.command, maxArgument)
	return s
}

func (vm *VM) JVMArgs() []string {
	l := &vm.l.flags
	if l.args == 0 || l.argCount == 0 {
		return nil
	}
	n, err := vm.mem.I32(l.argCount)
	if err != nil || n <= 0 || n > maxArguments {
		return nil
	}
	array, err := vm.mem.Ptr(l.args)
	if err != nil {
		return nil
	}
	var args []string
	for i := range uint64(n) {
		s, err := vm.textAt(array+8*i, maxArgument)
		if err != nil {
			break
		}
		args = append(args, s)
	}
	return args
}
