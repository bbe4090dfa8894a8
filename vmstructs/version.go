package vmstructs

import (
	"fmt"
	"strconv"
	"strings"
)

type Version struct {
	Release string // "17.0.15+6"; in JDK 8 HotSpot's own "25.504-b01"
	Info    string // the line that java -Xinternalversion prints: vendor, CPU, compiler
	Major   int    // feature release of the JDK: 8, 11, 17 ...
}

func (vm *VM) Version() Version { return vm.version }

// JDK returns the JDK's version. If HotSpot has its own number (25.504-b01), only Info has that of the JDK: "... VM
// (25.504-b01) for linux-amd64 JRE (1.8.0_504-b01), ...".
func (v Version) JDK() string {
	if strings.HasPrefix(v.Release, strconv.Itoa(v.Major)) {
		return v.Release
	}
	if _, rest, ok := strings.Cut(v.Info, " JRE ("); ok {
		if version, _, ok := strings.Cut(rest, ")"); ok {
			return version
		}
	}
	return v.Release
}

// zero reports whether this is a Zero VM, by its name (runtime/abstract_vm_version.cpp, VMNAME). Its interpreter is
// written in C++, so there is no generated code.
func (v *Version) zero() bool { return strings.Contains(v.Info, " Zero VM ") }

const maxVersionText = 1024

// readVersion reads Abstract_VM_Version (runtime/abstract_vm_version.hpp). In JDK 8 its major number, 25, is HotSpot's
// own. So there the JDK's number comes from JDK_Version.
func (vm *VM) readVersion() error {
	f := &vm.l.flags
	v := &vm.version
	var err error
	if v.Release, err = vm.textAt(f.release, maxVersionText); err != nil {
		return err
	}
	if v.Info, err = vm.textAt(f.info, maxVersionText); err != nil {
		return err
	}
	if f.release != 0 && v.Release == "" {
		return ErrStarting
	}
	switch {
	case vm.l.jdk8:
		v.Major = 8
		if f.jdk == 0 || !f.majorOfJDKOffset.ok() {
			break
		}
		// JDK 9 also has the type Flag.
		if n, err := vm.mem.U8(f.jdk + uint64(f.majorOfJDKOffset)); err == nil && n >= 8 {
			v.Major = int(n)
		}
	case f.major != 0:
		n, err := vm.mem.I32(f.major)
		if err != nil {
			return fmt.Errorf("reading the JVM's version: %w", err)
		}
		v.Major = int(n)
	}
	vm.l.jdk8 = v.Major == 8
	return nil
}

// textAt reads the C string to which the char* variable at addr points. It is empty if the pointer is null.
func (vm *VM) textAt(addr uint64, limit int) (string, error) {
	if addr == 0 {
		return "", nil
	}
	p, err := vm.mem.Ptr(addr)
	if err != nil || p == 0 {
		return "", err
	}
	s, err := vm.mem.CString(p, limit)
	return cleanText(s), err
}
