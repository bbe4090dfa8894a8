//go:build linux

package session

import (
	"maps"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/sampler/events"
	"goprof/testdata/ctest"
)

// leaks waits until the test continues it. Then it allocates memory in all ways, and frees nine of ten blocks. One
// thread frees what another one has allocated.
const leaks = `
#include <malloc.h>
#include <pthread.h>
static void *volatile handed;
static void *taker(void *p) { free(p); return NULL; }
int main(void) {
	void *volatile p, *volatile none = NULL;
	ready();
	raise(SIGSTOP);
	for (int i = 0; i < 200; i++) {
		int leak = i % 10 == 0;
		p = malloc(100); if (!leak) free(p);
		p = malloc(2000000); if (!leak) free(p);        // mapped for itself
		p = calloc(3, 50); if (!leak) free(p);
		p = calloc(300, 50); if (!leak) free(p);        // ends in memset
		p = realloc(none, 70); p = realloc(p, 7000); if (!leak) free(p);
		p = realloc(malloc(30), 20); if (!leak) p = realloc(p, 0);
		if (posix_memalign((void **)&p, 64, 640) != 0) return 1;
		if (!leak) free(p);
		p = aligned_alloc(64, 128); if (!leak) free(p);
		p = memalign(128, 256); if (!leak) free(p);
		p = valloc(300); if (!leak) free(p);
		p = malloc(SIZE_MAX / 2);                       // fails
		posix_memalign((void **)&p, 3, 640);            // fails
	}
	for (int i = 0; i < 10; i++) {
		pthread_t t;
		pthread_create(&t, NULL, taker, malloc(111111));
		pthread_join(t, NULL);
	}
	say(1);
	for (;;) pause();
}`

// TestLeaksAreCounted: the leaked bytes are exact, whichever function allocated them.
func TestLeaksAreCounted(t *testing.T) {
	cpu := ctest.NeedCPU(t)
	if err := events.TryProbes(); err != nil {
		t.Skipf("this machine permits no probes: %v", err)
	}
	c := ctest.Run(t, leaks)
	plan, end := countHits(t, cpu, c, &leakWays[len(leakWays)-1], 1, 1e9)
	unix.Kill(c.PID, syscall.SIGCONT)
	c.Number(t)
	end()
	kept := plan.list[0].Pairing.Kept
	defer kept.Close()
	got, want := map[uint64]int{}, map[uint64]int{100: 20, 2000000: 20, 150: 20, 15000: 20, 7000: 20, 20: 20,
		640: 20, 128: 20, 256: 20, 300: 20}
	kept.Each(func(_ uint64, p events.Piece) {
		if want[p.Own] > 0 || p.Own == 70 || p.Own == 111111 {
			got[p.Own]++
		}
	})
	for size, n := range want {
		if got[size] != n {
			t.Errorf("%d pieces of %d bytes are kept, there are %d", got[size], size, n)
		}
	}
	if len(got) != len(want) || kept.Unended != 0 || kept.Full != 0 {
		t.Errorf("%v, %+v", got, kept.PairCounts)
	}
}

// moves allocates memory until calls are not sampled any more. Then it moves its blocks and frees them.
const moves = `
int main(void) {
	static void *volatile p[200];
	void *volatile other;
	ready();
	raise(SIGSTOP);
	for (int i = 0; i < 200; i++) p[i] = malloc(777);
	for (int i = 0; i < 60000; i++) { other = malloc(50); free(other); }
	sleep(2);
	for (int i = 0; i < 200; i++) { p[i] = realloc(p[i], 7000 + 1000 * i); free(p[i]); }
	say(1);
	for (;;) pause();
}`

// TestMovedIsGivenBack: a block that realloc moves is no leak, even while calls are not sampled any more.
func TestMovedIsGivenBack(t *testing.T) {
	cpu := ctest.NeedCPU(t)
	if err := events.TryProbes(); err != nil {
		t.Skipf("this machine permits no probes: %v", err)
	}
	c := ctest.Run(t, moves)
	plan, end := countHits(t, cpu, c, &leakWays[len(leakWays)-1], 1, 0.01)
	unix.Kill(c.PID, syscall.SIGCONT)
	c.Number(t)
	end()
	kept := plan.list[0].Pairing.Kept
	defer kept.Close()
	if kept.Stopped == 0 {
		t.Skip("the calls were not too dear for this machine")
	}
	left := 0
	kept.Each(func(_ uint64, p events.Piece) {
		if p.Own == 777 {
			left++
		}
	})
	if left > 0 || kept.Closed > 0 {
		t.Errorf("%d pieces are kept that were moved and given back, %+v", left, kept)
	}
}

// unmapping maps memory in all ways, and unmaps nine of ten mappings.
const unmapping = `
#define _GNU_SOURCE
#include <sys/mman.h>
static char *map(size_t n, int access) { return mmap(NULL, n, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
int main(void) {
	char *volatile p;
	ready();
	raise(SIGSTOP);
	for (int i = 0; i < 200; i++) {
		int leak = i % 10 == 0;
		p = map(12288, PROT_READ); if (!leak) munmap(p, 12288);
		p = map(20000, PROT_READ | PROT_WRITE); if (!leak) munmap(p, 20480);
		p = mremap(map(4096, PROT_READ), 4096, 28672, MREMAP_MAYMOVE); if (!leak) munmap(p, 28672);
		p = map(36864, PROT_READ); // given back by taking the access away
		if (!leak) mmap(p, 36864, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		map(65536, PROT_NONE);     // no memory
		map(SIZE_MAX / 2, PROT_READ);  // fails
		mmap(NULL, 45056, PROT_READ, MAP_PRIVATE, -1, 0); // fails
	}
	p = map(53248, PROT_READ);
	munmap(p, 4096);
	p = map(57344, PROT_READ);
	mmap(p, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); // a part
	p = malloc(2000000); // a mapping
	say(1);
	for (;;) pause();
}`

// TestMapsAreCounted: the bytes that a program does not unmap are exact, even if it unmaps a part of a mapping.
func TestMapsAreCounted(t *testing.T) {
	cpu := ctest.NeedCPU(t)
	if err := events.TryProbes(); err != nil {
		t.Skipf("this machine permits no probes: %v", err)
	}
	c := ctest.Run(t, unmapping)
	plan, end := countHits(t, cpu, c, &mapLeakWays[len(mapLeakWays)-1], 1, 1e9)
	unix.Kill(c.PID, syscall.SIGCONT)
	c.Number(t)
	end()
	kept := plan.list[0].Pairing.Kept
	defer kept.Close()
	got := map[uint64]int{}
	kept.Each(func(_ uint64, p events.Piece) { got[p.Own]++ })
	want := map[uint64]int{12288: 20, 20000: 20, 28672: 20, 36864: 20, 53248: 1, 57344: 1, 2002944: 1}
	if !maps.Equal(got, want) || kept.Unended != 0 || kept.Full != 0 || kept.Parts != 2 {
		t.Errorf("%v are kept, there are %v; %+v", got, want, kept.PairCounts)
	}
}
