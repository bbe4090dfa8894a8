//go:build linux

package process

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

// mapPages maps memory before a page that cannot be read, so that the readable memory certainly ends there.
func mapPages(t testing.TB, pages int) []byte {
	t.Helper()
	size := unix.Getpagesize()
	b, err := unix.Mmap(-1, 0, (pages+1)*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	if err := unix.Mprotect(b[pages*size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	for i := range pages * size {
		b[i] = byte(i*31 + i>>8)
	}
	return b[:pages*size]
}

func TestRead(t *testing.T) {
	p := openSelf(t)
	mem := mapPages(t, 4)
	at := addressOf(mem)
	end := at + uint64(len(mem))
	got := make([]byte, 1000)
	if err := p.Read(at+77, got); err != nil || !bytes.Equal(got, mem[77:1077]) {
		t.Errorf("Read: %v", err)
	}
	for name, addr := range map[string]uint64{"across the end": end - 999, "behind the end": end, "null": 0,
		"kernel": 1<<63 + 4096, "last": ^uint64(0) - 3} {
		if err := p.Read(addr, got); !errors.Is(err, ErrFault) {
			t.Errorf("%s: %v, want ErrFault", name, err)
		}
	}
	if n, err := p.ReadUpTo(end-100, got); n != 100 || err != nil || !bytes.Equal(got[:100], mem[len(mem)-100:]) {
		t.Errorf("ReadUpTo = %d, %v", n, err)
	}
	if err := p.Read(0, nil); err != nil {
		t.Errorf("Read of nothing: %v", err)
	}
}

// TestReadMany reads lists with bad ranges in any position.
func TestReadMany(t *testing.T) {
	p := openSelf(t)
	mem := mapPages(t, 4)
	at, end := addressOf(mem), addressOf(mem)+uint64(len(mem))
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 63, 64, 65, 128, 200, 1000} {
		for _, bad := range []int{0, 1, 3, 50, 100} { // per cent
			rs := make([]Range, n)
			want := make([]bool, n)
			for i := range rs {
				size := rnd.IntN(200)
				want[i] = rnd.IntN(100) >= bad
				addr := at + uint64(rnd.IntN(len(mem)-200))
				if !want[i] {
					size++
					addr = []uint64{0, end, end - uint64(size) + 1, 1 << 60}[rnd.IntN(4)]
				}
				rs[i] = Range{Addr: addr, Buf: make([]byte, size), OK: !want[i]}
			}
			p.ReadMany(rs)
			for i, r := range rs {
				if r.OK != want[i] {
					t.Fatalf("%d ranges, %d%% bad: number %d at %#x: OK = %v", n, bad, i, r.Addr, r.OK)
				}
				if r.OK && !bytes.Equal(r.Buf, mem[r.Addr-at:][:len(r.Buf)]) {
					t.Fatalf("%d ranges, %d%% bad: number %d has other bytes", n, bad, i)
				}
			}
		}
	}
}

func TestReadsDoNotAllocate(t *testing.T) {
	p := openSelf(t)
	mem := mapPages(t, 1)
	buf := make([]byte, 64)
	rs := make([]Range, 100)
	for i := range rs {
		rs[i] = Range{Addr: addressOf(mem) + uint64(i), Buf: make([]byte, 8)}
	}
	rs[50].Addr = 0
	n := testing.AllocsPerRun(100, func() {
		p.Read(addressOf(mem), buf)
		p.Read(0, buf)
		p.ReadMany(rs)
		p.Alive()
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRead8(b *testing.B)   { benchmarkRead(b, 8) }
func BenchmarkRead16K(b *testing.B) { benchmarkRead(b, 16<<10) }

func benchmarkRead(b *testing.B, n int) {
	p := openSelf(b)
	mem := mapPages(b, 16)
	buf := make([]byte, n)
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Read(addressOf(mem), buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadMany64(b *testing.B) {
	p := openSelf(b)
	mem := mapPages(b, 16)
	rs := make([]Range, 64)
	for i := range rs {
		rs[i] = Range{Addr: addressOf(mem) + uint64(i*1000), Buf: make([]byte, 8)}
	}
	b.ReportAllocs()
	for b.Loop() {
		p.ReadMany(rs)
	}
}

func BenchmarkAlive(b *testing.B) {
	p := openSelf(b)
	b.ReportAllocs()
	for b.Loop() {
		p.Alive()
	}
}

func BenchmarkOpen(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		openSelf(b).Close()
	}
}

func BenchmarkCodeWarm(b *testing.B) {
	p := openSelf(b)
	image, ok := p.Image(vdsoName)
	if !ok {
		b.Skip("no vdso")
	}
	addr, err := p.Global(vdsoName, "__vdso_clock_gettime")
	if err != nil {
		addr = image.Start + 0xa00
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Code(addr, true)
	}
}
