package vmstructs

// memoryLayout has the JVM's tables that package memory reports and that no other layout here has. All of them are
// optional: memory without a known owner is reported as such.
//
// gc/shared/barrierSet.hpp, cardTableBarrierSet.hpp, cardTable.hpp (memory/cardTableModRefBS.hpp up to 8),
// memory/allocation.hpp (MetaspaceObj), oops/instanceKlass.hpp.
type memoryLayout struct {
	barrier     uint64 `vm:"BarrierSet._barrier_set|oopDesc._bs"` // the barrier set
	table       offset `vm:"CardTableBarrierSet._card_table"`     // up to 8 the barrier set is the table
	cards       offset `vm:"CardTable._byte_map|CardTableModRefBS._byte_map"`
	cardBytes   offset `vm:"CardTable._byte_map_size|CardTableModRefBS._byte_map_size"`
	archiveBase uint64 `vm:"MetaspaceObj._shared_metaspace_base"`
	archiveTop  uint64 `vm:"MetaspaceObj._shared_metaspace_top"`
	constants   offset `vm:"InstanceKlass._constants"`
	helper      offset `vm:"Klass._layout_helper"`
	manager     offset `vm:"G1CollectedHeap._hrm"` // a HeapRegionManager
}
