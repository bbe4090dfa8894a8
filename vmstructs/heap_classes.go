package vmstructs

import (
	"cmp"

	"goprof/process"
)

// LoaderOf returns a class's loader: boot, platform, application, or the class of another loader. It is empty if the
// loader is not known, because the collector may be moving it.
func (h *Heap) LoaderOf(klass uint64) string {
	l, more := &h.vm.l.health, &h.vm.l.areas
	data := h.health.pointerAt(klass, l.loaderOf)
	if data == 0 || !more.loader.ok() {
		return ""
	}
	at := data + uint64(more.loader)
	if !more.oopLoad {
		if at = h.health.pointerAt(at, 0); at == 0 {
			return "boot"
		}
	}
	loader, err := h.wideAt(at)
	if err == nil && loader == 0 && more.oopLoad {
		return "boot"
	}
	var head [klassBytes]byte
	if err != nil || loader == 0 || h.vm.mem.Bytes(loader, head[:]) != nil {
		return ""
	}
	class, err := h.class(h.klasses.klassIn(head[:]), head[:])
	if err != nil {
		return ""
	}
	return cmp.Or(BuiltinLoader(class.Name), class.Name)
}

// BuiltinLoader returns the name of the JDK's own loader of that class: platform or application. It is empty for
// loaders of programs. (Up to 8: sun/misc/Launcher.java, since 9: jdk/internal/loader/ClassLoaders.java.)
func BuiltinLoader(class string) string {
	switch class {
	case "jdk.internal.loader.ClassLoaders$AppClassLoader", "sun.misc.Launcher$AppClassLoader":
		return "application"
	case "jdk.internal.loader.ClassLoaders$PlatformClassLoader", "sun.misc.Launcher$ExtClassLoader":
		return "platform"
	}
	return ""
}

// SeenObject is an object and its address when it was seen.
type SeenObject struct {
	Addr  uint64
	Class *ObjectClass
}

// Gone counts the objects that are no longer at their addresses.
func (h *Heap) Gone(objects []SeenObject) (gone int) {
	if need := klassBytes * len(objects); len(h.heads) < need {
		h.heads = make([]byte, need)
	}
	h.ranges = h.ranges[:0]
	for i := range objects {
		h.ranges = append(h.ranges, process.Range{Addr: objects[i].Addr, Buf: h.heads[klassBytes*i : klassBytes*(i+1)]})
	}
	h.vm.t.ReadMany(h.ranges)
	for i := range objects {
		head := h.ranges[i].Buf
		if !h.ranges[i].OK || !h.markMakesSense(word(head)) || h.klasses.klassIn(head) != objects[i].Class.Klass {
			gone++
		}
	}
	return gone
}

func (h *Heap) CollectorName() string { return h.vm.Collector() }
