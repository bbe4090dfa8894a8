package output

import (
	"bufio"
	"cmp"
	"fmt"
	"io"

	"goprof/profile"
)

type memoryReport struct {
	*profile.Memory
	Growth *profile.MemoryGrowth `json:"growth,omitempty"`
}

// MemoryJSON writes the parts of memory as JSON. It adds the growth if growth is not nil.
func MemoryJSON(to io.Writer, m *profile.Memory, growth *profile.MemoryGrowth) error {
	return WriteJSON(to, memoryReport{m, growth})
}

// partWords are the descriptions of the parts.
var partWords = map[string]string{
	profile.HeapPartOfMemory: "Java heap",
	profile.Metaspace:        "metaspace: metadata of classes",
	profile.ClassSpace:       "class space: the classes themselves",
	profile.CodeCache:        "code cache: compiled code",
	profile.ThreadStacks:     "thread stacks",
	profile.CollectorTables:  "tables of the collector: cards, marks",
	profile.ClassArchive:     "archive of shared classes",
	profile.MallocMemoryPart: "malloc: native libraries, direct buffers, the JVM's own",
	profile.LibraryMemory:    "programs and libraries",
	profile.MappedFiles:      "mapped files and shared memory",
	profile.UnnamedMemory:    "without a name: other mappings of no file",
}

// PartOfMemory returns the description of a part of memory.
func PartOfMemory(name string) string { return cmp.Or(partWords[name], name) }

// MemoryText writes the parts of memory, for people. If growth is not nil, it comes first. top bounds the files,
// libraries and tables that are shown in each part.
func MemoryText(to io.Writer, m *profile.Memory, growth *profile.MemoryGrowth, top int) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "%s (pid %d, %s): %s in memory", cmp.Or(CleanName(m.MainClass), "the JVM"), m.PID, m.Collector,
		Size(m.Resident))
	if m.Swapped > 0 {
		fmt.Fprintf(w, ", %s in swap", Size(m.Swapped))
	}
	fmt.Fprintf(w, "; read in %v\n", Round(m.Took))
	memoryKernel(w, m)
	if growth != nil {
		memoryGrowth(w, m, growth)
	}
	fmt.Fprintf(w, "\n%11s  %7s  %11s  %11s  %11s  part\n", "in memory", "share", "used", "committed", "reserved")
	for i := range m.Parts {
		p := &m.Parts[i]
		used := ""
		if p.Used > 0 {
			used = Size(p.Used)
		}
		fmt.Fprintf(w, "%11s  %7s  %11s  %11s  %11s  %s%s\n", Size(p.Resident), shareText(float64(p.Resident),
			float64(m.Resident)), used, Size(p.Committed), Size(p.Reserved), PartOfMemory(p.Name), countOf(p))
	}
	memoryDetails(w, m)
	for i := range m.Parts {
		p := &m.Parts[i]
		if len(p.Pieces) == 0 || p.Name == profile.MallocMemoryPart {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", PartOfMemory(p.Name))
		for _, piece := range p.Pieces[:min(len(p.Pieces), top)] {
			fmt.Fprintf(w, "%11s  of %s  %s\n", Size(piece.Resident), Size(piece.Reserved), CleanName(piece.Name))
		}
	}
	for _, note := range m.Notes {
		fmt.Fprintf(w, "note: %s\n", Printable(note))
	}
	return w.Flush()
}

// countOf returns the remark on a part: bytes in swap, threads, or free bytes that are kept. It may be empty.
func countOf(p *profile.MemoryPart) string {
	switch {
	case p.Swapped > 0:
		return fmt.Sprintf(" (%s more in swap)", Size(p.Swapped))
	case p.Name == profile.ThreadStacks:
		return fmt.Sprintf(" (%s)", Grouped(int64(p.Count)))
	case p.Name == profile.HeapPartOfMemory && p.Used > 0 && p.Resident > p.Used:
		return fmt.Sprintf(" (%s free and kept)", Size(p.Resident-p.Used))
	}
	return ""
}

// memoryKernel writes the memory that the kernel counts, and the limits of the control group.
func memoryKernel(w *bufio.Writer, m *profile.Memory) {
	k := &m.Kernel
	fmt.Fprintf(w, "  kernel: RSS %s (%s of no file, %s of files, %s shared); page tables %s", Size(k.RSS),
		Size(k.Anonymous), Size(k.File), Size(k.Shared), Size(k.PageTables))
	if k.HugePages != nil {
		fmt.Fprintf(w, "; in huge pages %s", Size(*k.HugePages))
	}
	fmt.Fprintln(w)
	g := m.Group
	switch {
	case g == nil:
		fmt.Fprintln(w, "  control group: not known")
	case g.Max == 0:
		fmt.Fprintf(w, "  control group %s: %s used, no limit that goprof sees\n", Printable(g.Path), Size(g.Used))
	case g.Cache == nil:
		fmt.Fprintf(w, "  control group %s: %s of %s used; how much of that is a cache of files is not known\n",
			Printable(g.Path), Size(g.Used), Size(g.Max))
	default:
		fmt.Fprintf(w, "  control group %s: %s of %s used, %s of that cache of files: %s left\n", Printable(g.Path),
			Size(g.Used), Size(g.Max), Size(*g.Cache), Size(g.Left))
	}
}

func memoryGrowth(w *bufio.Writer, m *profile.Memory, g *profile.MemoryGrowth) {
	fmt.Fprintf(w, "\nGrowth over %v, %d readings: %s\n", Round(g.Over), g.Readings, rateText(g.Resident))
	for _, p := range g.Parts {
		fmt.Fprintf(w, "%14s a second +- %s, from %s to %s: %s\n", Size(uint64(p.Bytes.Rate)), Size(uint64(p.Bytes.Error)),
			Size(p.From), Size(p.To), PartOfMemory(p.Name))
	}
	if d := g.Direct; d != nil {
		fmt.Fprintf(w, "%14s a second +- %s, from %s to %s: direct buffers, %s\n", Size(uint64(d.Bytes.Rate)),
			Size(uint64(d.Bytes.Error)), Size(d.From), Size(d.To), placeOfMalloc(m))
	}
	switch {
	case len(g.Parts) == 0:
		fmt.Fprintln(w, "  No part grew for certain.")
	case g.Full > 0:
		fmt.Fprintf(w, "  At this rate the control group's limit of %s is reached in about %v.\n", Size(m.Group.Max),
			Round(g.Full))
	}
}

// memoryDetails writes the facts about direct buffers and malloc.
func memoryDetails(w *bufio.Writer, m *profile.Memory) {
	fmt.Fprintln(w)
	switch d := m.Direct; {
	case d == nil:
		fmt.Fprintln(w, "Direct buffers: not known")
	case d.Max == 0 && d.Count == 0:
		fmt.Fprintln(w, "Direct buffers: never used")
	default:
		limit := ""
		if d.Max > 0 {
			limit = fmt.Sprintf(" of %s (-XX:MaxDirectMemorySize)", Size(d.Max))
		}
		fmt.Fprintf(w, "Direct buffers: %s%s in %s buffers, %s\n", Size(d.Reserved), limit,
			Grouped(int64(d.Count)), placeOfMalloc(m))
	}
	a := &m.Malloc
	if a.Other != "" {
		fmt.Fprintf(w, "malloc is %s, not glibc's: what it has is without a name, but for %s in [heap]\n",
			Printable(a.Other), Size(a.InUse+a.Mapped))
		return
	}
	if a.InUse+a.Mapped == 0 {
		return
	}
	fmt.Fprintf(w, "malloc: %s in the main arena and %s of threads", Size(a.InUse), Grouped(int64(a.Arenas)))
	if a.Looked > 0 {
		fmt.Fprintf(w, " (%s looked through: %s free and kept)", Size(a.Looked), Size(a.Free))
	}
	fmt.Fprintf(w, "; %s in %s pieces with a mapping each\n", Size(a.Mapped), Grouped(int64(a.Pieces)))
}

// placeOfMalloc returns the part with the memory that malloc gave to direct buffers.
func placeOfMalloc(m *profile.Memory) string {
	if m.Malloc.Other != "" {
		return "a part of what is without a name"
	}
	return "a part of malloc"
}
