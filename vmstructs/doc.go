// Package vmstructs reads HotSpot's own data out of a running JVM: the code at a pc, the methods that are inlined there
// and their names, the threads and their states. It is the only package that knows JDK versions.
//
// # What you give, what you get
//
// Open takes a process.Target and reads the tables that libjvm.so exports for debuggers (runtime/vmStructs.hpp): names
// of C++ types and fields with their offsets, addresses of static fields, sizes, constants. Everything else follows
// from these tables. A VM then answers questions: Blob and Scopes for compiled code, Method for a Method*, Threads,
// ThreadName and Anchor for threads, Flag, Version and so on. Only one goroutine may use a VM at a time. Results of
// Blob, Scopes, Method and Threads may be shared. Do not change them.
//
// # Errors, and which data is valid
//
// The target runs while it is read, and its memory is not trusted. Every read is bounded, every loop ends, and a failed
// read is an error, never a zero. Errors are those of errors.go, or of package process. No data makes this package
// panic, and all names are valid UTF-8.
//
// Memory may change at two times, and each has a remedy:
//   - during a read: at the end of the read, a blob's compile id or a method's whole chain of pointers is read again.
//     If it has changed, the result is ErrChanged.
//   - after it was cached: at the end of a walk, a Proof reads again, in one batch, everything that identifies the data
//     that the walk has used. Data that has changed is removed from the caches.
//
// So all data that leads to a name was true at one moment. An address alone proves nothing, because the memory of
// metadata (hidden classes, lambda forms) and of code is soon reused for other data of the same size.
//
// If a JVM lacks a field, goprof lacks only the capability that needs the field. Missing lists these capabilities. A
// JVM is Unsupported only if it lacks the code cache, blobs, compiled frames or method names.
//
// # Choosing layouts
//
// Offsets are never assumed. They differ between releases, vendors, CPUs, even between 25.0.3 and 25.0.5. Most are zero
// in the file of libjvm.so, so goprof reads them from live memory. If releases have different fields for the same
// purpose, both fields are looked up. The one that exists shows how to read the data (layout*.go):
//
//	CodeCache::_heap                       up to 8: one heap
//	CodeCache::_heaps                      since 9: one to three heaps
//	CompiledMethod::_method                9 to 22
//	nmethod::_method                       8, and since 23
//	CodeBlob::_code_begin                  9 to 22: a pointer
//	CodeBlob::_code_offset                 8, and since 23: an offset from the blob
//	nmethod::_immutable_data               since 23: debug information is outside of the code cache
//	CodeBlob::_mutable_data                since 25: relocations and metadata are outside, too
//	Threads::_thread_list                  8 and 11
//	ThreadsSMRSupport::_java_thread_list   17 and later
//	InstanceKlass::_fields                 up to 20
//	InstanceKlass::_fieldinfo_stream       since 21
//	type Flag                              8
//	type JVMFlag                           later
//
// A version number is used only for facts that no field shows: which byte UNSIGNED5 leaves out (vm.go), where an
// array's elements begin without compressed class pointers (oop.go), and whether interpreter frames have a mirror slot
// (VM.Interp). docs/contributing/new-jdk.md is the checklist for a new release; releases.txt lists the tested releases.
//
// # The code cache (codecache.go)
//
// Generated code is in heaps that are divided into segments of 64 or 128 bytes. A map with a byte for each segment
// shows how far back the first segment of its block is. The block begins with a HeapBlock, and a CodeBlob follows
// (memory/heap.cpp, CodeHeap::find_block_for):
//
//	segment   0     1     2     3     4     5     6     7
//	map       0     1     2     ff    0     1     2     3     ...0xfe, 1, 2, ...
//	          HeapBlock, CodeBlob     free  HeapBlock, CodeBlob
//
// Only the lower part of a heap is committed, and this part grows. So VirtualSpace::_high is read again if a pc is
// beyond it.
//
// # Compiled code (blob.go, nmethod.go, scopes.go)
//
// An nmethod is a CodeBlob with a header, code, stubs, and debug information (code/nmethod.hpp):
//
//	8 to 22   header | code | stubs | oops | metadata | scopes | PcDescs | dependencies ...
//	23, 24    header | code | stubs | oops | metadata       C heap: ... PcDescs | scopes
//	since 25  header | code | stubs | oops    C heap: relocations | metadata, and as above
//
// A PcDesc is four ints, sorted by the first: pc, scope, objects, flags (code/pcDesc.hpp). For a return address, the
// PcDesc with exactly this pc is used. For any other pc the next PcDesc is used, because the compiler describes ranges
// by their ends (prims/forte.cpp). The scope of a PcDesc consists of a few compressed numbers (code/scopeDesc.cpp): the
// offset of the sender's scope, the method's index in the metadata, the bci plus one. The chain of senders leads from
// the innermost method to the one that owns the code.
//
// The compressed numbers, UNSIGNED5, are in unsigned5.go; line tables (lines.go) and, since 21, the list of a class's
// fields (fields.go) also consist of such numbers.
//
// # Things that are only described by their names (codelets.go, collectors.go, known.go, stubs.go)
//
// Only a name shows the purpose of an interpreter's codelet, of a thread's first function, and of the methods in which
// threads wait. These files map the names to roles. No other package compares these names.
//
// # Methods (method.go, symbol.go, lines.go)
//
//	Method -> ConstMethod -> ConstantPool -> InstanceKlass -> Symbol   the class
//	          bytecodes      entries      -> Symbol                    name, signature, file
//	          line table
//
// # Threads (thread.go, threadname.go, oop.go)
//
// A JavaThread points to its OSThread, which has the thread id, and to its java.lang.Thread, which has the name. Java
// objects move, and their layout depends on flags. So fields are found by name in the metadata of their class, and an
// object counts as a thread's only if its field eetop points back to the thread. While ZGC relocates objects, and for
// stale references afterwards, the result is ErrMoved. Metadata never moves.
//
// # Virtual threads (continuation.go, chunk.go, virtual.go, containers.go)
//
// A Continuations finds in the heap the virtual thread that a carrier runs, the stack chunks of its continuation, and
// all virtual threads in the JDK's thread containers. It has its own scratch memory, so a separate goroutine may use
// it. It reads an object's class from the header. It finds fields by name, and classes in the list of each class
// loader. A result is valid if a second read returns the same.
//
// # Executors and queues (pools.go, pools_executors.go, pools_connections.go)
//
// A thread's Runnable leads to its executor, and the executor to its queue. The names of classes and fields come from
// the sources of the JDK, Tomcat, Netty and HikariCP. A Runnable may refer to another thread's executor. So a thread is
// a worker only if the worker's object refers back to that thread.
package vmstructs
