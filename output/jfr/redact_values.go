package jfr

import "goprof/profile/redact"

// action is what redaction does with a field.
type action uint8

const (
	copyField action = iota
	leaveOut
	changeText
	changeSymbol
	zeroKey // a reference to a text with an unknown meaning
	goInto  // a structure in which something changes
)

// plan is the actions for the fields of a type.
type plan struct {
	actions  []action
	meanings []meaning
	asItIs   bool
}

// plan makes the plan of a type. A type that contains itself is never copied unchanged.
func (r *redactor) plan(of *class) *plan {
	if p := r.plans[of]; p != nil {
		return p
	}
	p := &plan{actions: make([]action, len(of.fields)), meanings: make([]meaning, len(of.fields))}
	r.plans[of] = p
	asItIs := true
	for i := range of.fields {
		f := &of.fields[i]
		p.meanings[i] = meaningOf(of, f)
		p.actions[i] = r.action(f)
		asItIs = asItIs && p.actions[i] == copyField
	}
	p.asItIs = asItIs
	return p
}

func meaningOf(of *class, f *field) meaning {
	if of.simple && vmPools[of.name] {
		return vmText
	}
	return textFields[of.name+"."+f.name]
}

// action decides what happens to a field.
func (r *redactor) action(f *field) action {
	switch {
	case !r.kept.keepsField(f.name, f.typ):
		return leaveOut
	case f.ref && f.class != nil && f.class.name == "jdk.types.Symbol":
		return changeSymbol
	case f.ref && f.class != nil && f.class.name == "java.lang.String":
		return zeroKey
	case f.form == formText:
		return changeText
	case f.form == formStruct && f.class != nil && !r.plan(f.class).asItIs:
		return goInto
	}
	return copyField
}

// around is what is known about the owner of a name. The meaning of the name depends on its owner.
type around struct {
	class  string // of a method or a source, by the file's name for it
	source string // the source file of the class, if the recording has it
}

// value appends a redacted value to b. It must read the whole value, even if parts are left out.
func (r *redactor) value(c *cursor, of *class, b []byte, depth int, in *around) []byte {
	if depth > maxValueDepth {
		c.fail("%s: values more than %d deep", of.name, maxValueDepth)
		return b
	}
	p := r.plan(of)
	for i := range of.fields {
		if !c.step() {
			return b
		}
		f := &of.fields[i]
		if p.actions[i] == copyField || p.actions[i] == leaveOut {
			from := c.at
			one := class{name: of.name, fields: of.fields[i : i+1]}
			c.value(&one, depth, nil)
			if p.actions[i] == copyField && c.bad == nil {
				b = append(b, c.b[from:c.at]...)
			}
			continue
		}
		n := 1
		if f.array {
			n = c.count(f.least())
			b = appendInt(b, uint64(n))
		}
		for range n {
			if !c.step() {
				return b
			}
			b = r.single(c, f, p.actions[i], p.meanings[i], b, depth, in)
		}
	}
	return b
}

// single appends one value to b, after the given action.
func (r *redactor) single(c *cursor, f *field, do action, m meaning, b []byte, depth int, in *around) []byte {
	switch do {
	case changeSymbol:
		key := c.int()
		text, known := r.k.symbols[key]
		if !known {
			return appendInt(b, 0)
		}
		return appendInt(b, r.symbols.key(r.text(m, text, in)))
	case zeroKey:
		c.int()
		return appendInt(b, 0)
	case changeText:
		t := c.text(false)
		if t.pooled {
			t.s = r.k.strings[t.key]
		}
		if t.s == "" {
			return append(b, stringNull)
		}
		if m == secretText {
			r.out.Texts++
		}
		return appendString(b, r.text(m, t.s, in))
	default:
		return r.value(c, f.class, b, depth+1, in)
	}
}

// meant are the functions for texts that can be redacted without other facts.
var meant = map[meaning]func(*redact.Redactor, string) string{
	vmText: (*redact.Redactor).JVMText, threadText: (*redact.Redactor).ThreadName, pathText: (*redact.Redactor).Path,
	targetText: (*redact.Redactor).Target, versionText: (*redact.Redactor).Version,
	programText: (*redact.Redactor).Program, sentence: (*redact.Redactor).Text, hostText: (*redact.Redactor).Host,
	settingText: (*redact.Redactor).Setting, descriptorText: (*redact.Redactor).Descriptor,
	packageText: (*redact.Redactor).Package, moduleText: (*redact.Redactor).Package,
	locationText: (*redact.Redactor).Location, loaderText: (*redact.Redactor).Loader, buildText: (*redact.Redactor).Build,
}

func (r *redactor) text(m meaning, s string, in *around) string {
	if by := meant[m]; by != nil {
		return by(r.by, s)
	}
	switch {
	case m == classText:
		return r.className(s, in)
	case m == methodNameText:
		return r.methodName(s, in)
	case m == sourceText:
		return r.sourceName(s, in)
	case m == eventTypeText && keptEvents[s]:
		return s
	}
	return ""
}

// className redacts the name of a class. Code without a class has another name there: its image's name without the
// ending, or a kind of code.
func (r *redactor) className(name string, in *around) string {
	if in != nil && isImage(in.source) {
		class, _, _ := cutImage(r.by.Path(in.source))
		return class
	}
	if isSortClass(name) || name == unknownClass || r.by.OpenLibrary(name) || r.by.OpenLibrary(name+".so") {
		return name
	}
	return r.by.Class(name)
}

func (r *redactor) methodName(name string, in *around) string {
	if in == nil {
		return r.by.MethodOf("", name)
	}
	switch {
	case isImage(in.source):
		return r.by.Native(name, in.source)
	case in.class == "", isSortClass(in.class):
		return r.by.Native(name, "")
	case r.by.OpenLibrary(in.class):
		return r.by.Native(name, in.class)
	}
	return r.by.MethodOf(in.class, name)
}

func (r *redactor) sourceName(name string, in *around) string {
	if isImage(name) {
		return r.by.Path(name)
	}
	class := ""
	if in != nil {
		class = in.class
	}
	return r.by.SourceOf(class, name)
}
