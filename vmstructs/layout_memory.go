package vmstructs

// memoryLayout has the JVM's tables that package memory reports and no other layout here has. All of them are optional:
// memory without a known owner is reported as such.
//
// gc/shared/barrierSet.hpp, cardTableBarrierSet.hpp, cardTable.hpp (memory/cardTableModRefBS.hpp up to 8),
// memory/allocation.hpp (MetaspaceObj), oops/instanceKlass.hpp.
type memoryLayout struct {
	barrier                 uint64 // a variable: the barrier set; up to 8 oopDesc::_bs
	table                   offset // CardTableBarrierSet; absent up to 8, where the barrier set is the table
	cards, cardBytes        offset // CardTable
	archiveBase, archiveTop uint64 // variables
	constants               offset // InstanceKlass
	helper                  offset // Klass
	manager                 offset // of G1CollectedHeap: its HeapRegionManager
}

func (r *resolver) memory() memoryLayout {
	return memoryLayout{
		barrier:     r.static("", "BarrierSet._barrier_set|oopDesc._bs"),
		table:       r.field("", "CardTableBarrierSet._card_table"),
		cards:       r.field("", "CardTable._byte_map|CardTableModRefBS._byte_map"),
		cardBytes:   r.field("", "CardTable._byte_map_size|CardTableModRefBS._byte_map_size"),
		archiveBase: r.static("", "MetaspaceObj._shared_metaspace_base"),
		archiveTop:  r.static("", "MetaspaceObj._shared_metaspace_top"),
		constants:   r.field("", "InstanceKlass._constants"),
		helper:      r.field("", "Klass._layout_helper"),
		manager:     r.field("", "G1CollectedHeap._hrm"),
	}
}
