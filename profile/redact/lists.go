package redact

import (
	_ "embed"
	"strings"
)

// openPackages are the packages of the JDK, and of open-source projects whose names do not reveal their users.
var openPackages = strings.Fields(`
	java javax jdk sun com.sun netscape.javascript org.ietf.jgss org.w3c.dom org.xml.sax jakarta org.jcp
	kotlin kotlinx scala groovy clojure org.codehaus org.jruby org.python
	org.apache org.eclipse org.jboss org.wildfly org.springframework org.hibernate io.quarkus io.micronaut io.vertx
	io.netty io.undertow io.grpc io.projectreactor reactor rx io.reactivex io.smallrye akka play org.glassfish
	com.fasterxml.jackson com.google.common com.google.protobuf com.google.gson com.google.inject okhttp3 okio retrofit2
	com.squareup.okhttp3 org.slf4j ch.qos.logback org.jctools com.lmax.disruptor com.github.benmanes.caffeine net.bytebuddy
	net.sf.cglib org.objectweb.asm javassist org.aspectj com.zaxxer.hikari org.postgresql com.mysql org.mariadb.jdbc org.h2
	org.hsqldb oracle.jdbc com.microsoft.sqlserver.jdbc redis.clients io.lettuce com.mongodb org.bson com.datastax.oss
	org.elasticsearch co.elastic org.opensearch com.rabbitmq io.opentelemetry io.micrometer io.prometheus io.dropwizard
	com.codahale.metrics org.quartz org.flywaydb liquibase org.mybatis org.thymeleaf freemarker org.yaml.snakeyaml
	org.bouncycastle io.jsonwebtoken com.nimbusds org.junit junit org.mockito org.testng com.intellij.rt one.profiler
	org.openjdk.jmh com.hazelcast org.infinispan net.sf.ehcache org.ehcache org.jgroups com.esotericsoftware.kryo
	org.msgpack com.github.luben.zstd net.jpountz org.xerial.snappy org.rocksdb com.sun.jna org.graalvm com.oracle.svm`)

// deniedPackages are below the packages above, and contain code of an application's authors. Scripts, mocks, proxies
// and functions of an application are compiled into some of them, with its names.
var deniedPackages = strings.Fields(`org.apache.jsp org.apache.pages jdk.proxy.user jdk.nashorn.internal.scripts
	org.python.pycode org.mockito.codegen org.jboss.weldx org.jboss.weld.proxies org.jboss.weld.generated
	org.apache.openjpa.enhance org.apache.cassandra.cql3.udf.gen`)

// openLibraries are the native libraries of the JDK and the system.
var openLibraries = strings.Fields(`
	libjvm.so libjvm.dylib java libjava.so libjli.so libnio.so libnet.so libextnet.so libzip.so libjimage.so libverify.so
	libinstrument.so libmanagement*.so libprefs.so libawt*.so libfontmanager.so libfreetype.so* libmlib_image.so libj2*.so
	libjdwp.so libdt_socket.so libattach.so libsaproc.so libjaas.so libsyslookup.so libjsvml.so libsctp.so librmi.so
	libjavajpeg.so liblcms.so libsplashscreen.so libjsound.so libj2gss.so libj2pcsc.so libjawt.so libharfbuzz*.so*
	libc.so.6 libc-2.*.so libc.musl-* ld-musl-* ld-linux*.so* ld-2.*.so libpthread*.so* libm.so* libm-2.*.so libdl*.so*
	librt*.so* libstdc++.so* libgcc_s.so* libz.so* libresolv*.so* libnss_*.so* libcrypto.so* libssl.so* libzstd*.so* liblz4*.so*
	libsnappy*.so* libnetty*.so libjnidispatch* librocksdbjni* libasyncProfiler.so libjemalloc.so* libtcmalloc*.so*
	linux-vdso.so* [vdso] [vsyscall] [kernel] [kernel.kallsyms] kernel vmlinux anon [anon] perf-map`)

// topLevels are first words of package names that reveal nothing.
var topLevels = setOf(`com org net io de fr uk co eu us edu gov app dev main`)

// methodWords are names of methods that half of all programs have.
var methodWords = setOf(`init clinit main run call get set put add remove apply accept test invoke invokeExact close
	lambda access new static dispose next hasNext iterator equals hashCode toString compare compareTo start stop
	execute submit read write flush accept process handle doRun`)

// classWords are what compilers and frameworks add to the name of a class.
var classWords = setOf(`Lambda Proxy EnhancerBySpringCGLIB FastClassBySpringCGLIB SpringCGLIB CGLIB ByteBuddy
	HibernateProxy HibernateInstantiator anonfun anonfunction Companion DefaultImpls WhenMappings EntriesMappings
	package module info jvst javassist MethodAccess ConstructorAccess Main Builder Impl Test
	GeneratedMethodAccessor GeneratedConstructorAccessor GeneratedSerializationConstructorAccessor
	DirectMethodHandle LambdaForm MH DMH Holder invokeStatic invokeVirtual invokeSpecial invokeInterface`)

// threadWords are words in names of threads of the JDK and of well-known servers.
var threadWords = setOf(`pool thread threads worker workers exec executor executors main http https nio nio2 bio apr ajp
	acceptor poller clientpoller blockpoller selector boss event loop group child parent io netty epoll kqueue
	fork join forkjoin common commonpool scheduler scheduled scheduling task tasks timer timers async cleaner reference
	handler finalizer signal dispatcher service notification compiler compilerthread gc g1 zgc shenandoah vm periodic
	attach listener sweeper monitor deflation refinement refine conc parallel concurrent marksweep cms
	mark marker young old director driver uncommitter unmapper stat relocate control c1 c2 jvmci
	destroyjavavm destroyjava virtual unparker carrier rmi tcp udp accept connection renewclean gc daemon idle jmx server client
	connector socket processor request requests response keep alive keepalive evictor hikari hikaripool housekeeper adder
	connection closer catalina utility container background startstop ioexecutor jetty qtp undertow xnio
	reactor elastic bounded single nioeventloopgroup epolleventloopgroup defaulteventexecutor defaulteventloop
	kafka producer consumer network coordinator heartbeat admin lettuce redis mongodb jdbc mysql postgresql cassandra
	quartz quartzscheduler akka default actor spring task taskscheduler taskexecutor simpleasynctaskexecutor
	awt eventqueue xawt shutdown java2d disposer jit jfr recorder flight sampler log logging logger logback log4j
	process reaper okhttp connectionpool dispatch grpc shared elg resolver dns store io rx computation cached newthread
	coroutine dispatchers watch watcher watchdog file filesystem delivery metrics reporter telemetry exporter batch span
	localhost tid starter test runner jvm os native wait tasks vert eventloop internal blocking readingthread periodictask`)

// codeWords are words in names of HotSpot's stubs, the C library and the kernel. They are used if a function has no
// file.
var codeWords = setOf(`stubroutines stub stubs initial continuation final routines interpreter call adapters adapter i2c
	c2i vtable itable runtime deopt uncommon trap exception blob safepoint handler polling page return resolve opt virtual
	static wrong method ic miss icmiss slow fast path arraycopy jbyte jshort jint jlong oop disjoint conjoint arrayof
	checkcast generic unsafe copy fill zero blocks aescrypt decrypt block ghash base64 encode decode sha md5 crc32 crc32c
	adler32 montgomery multiply square bigint shift nmethod entry barrier barriers osr intrinsics signature handlers
	throw rethrow unwind monitorenter monitorexit new instance array load klass mirror appendix patching jni native
	clone clone3 start thread java main libc syscall pthread mutex lock unlock cond wait timedwait clockwait futex poll epoll
	nanosleep read write recv send sendto recvfrom accept connect open close memcpy memmove memset strlen malloc free
	calloc realloc mmap munmap avx evex erms unaligned sse sse2 unknown forward verify oopmap counts code cache
	interface compiled lazy megamorphic linker method handle freeze thaw yield preempt upcall downcall string inflate
	deflate do sys x64 arm64 ia32 hwframe after vfs ksys tcp udp inet ip ip6 sock sk skb net dev ext4 xfs btrfs
	overlay ovl page pages fault folio mm schedule sched switch finish task rcu irq softirq hrtimer timer tick user mode
	exc asm common interrupt apic work el0 el1 el0t 64 sync iter file fd fget fput locked raw spin rwsem down up try wake q
	wakeup poll ep eventpoll kmem cache alloc slab vm vma anon madvise mprotect mremap copy to from fallback nf hook ipv4
	queue xmit rcv input output local out established process backlog napi bio blk mq submit nvme writeback flush sync
	indexof compare sin cos tan exp pow log log10 bytes shorts ints longs float double char boolean get int`)

//go:embed words.txt
var ownWords string

// textWords are the words of goprof's own messages, whose sentences stay readable.
var textWords = setOf(strings.ToLower(ownWords))

func setOf(words string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}
