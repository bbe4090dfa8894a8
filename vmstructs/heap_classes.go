package vmstructs

// LoaderOf names who has loaded a class: boot, platform, application, or the class of another loader. It is empty where
// that is not known: the collector may be moving the loader.
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
	loader, err := h.vm.wideOopAt(at)
	if err != nil {
		return ""
	}
	if loader == 0 {
		return "boot"
	}
	var head [klassBytes]byte
	if h.vm.mem.Bytes(loader, head[:]) != nil {
		return ""
	}
	class, err := h.class(h.klasses.klassIn(head[:]), head[:])
	if err != nil {
		return ""
	}
	switch class.Name {
	case "jdk.internal.loader.ClassLoaders$AppClassLoader", "sun.misc.Launcher$AppClassLoader":
		return "application"
	case "jdk.internal.loader.ClassLoaders$PlatformClassLoader", "sun.misc.Launcher$ExtClassLoader":
		return "platform"
	}
	return class.Name
}

// Still reports whether an object of that class is still where it was.
func (h *Heap) Still(addr uint64, class *ObjectClass) bool {
	var head [klassBytes]byte
	return h.vm.mem.Bytes(addr, head[:]) == nil && h.markMakesSense(word(head[:])) &&
		h.klasses.klassIn(head[:]) == class.Klass
}

// CollectorName is which collector the JVM has.
func (h *Heap) CollectorName() string { return h.vm.Collector() }
