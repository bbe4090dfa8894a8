//go:build linux

package sampletest

import (
	"sync/atomic"
	"testing"

	"goprof/sampler"
	"goprof/testdata/ctest"
)

// Forks samples a program that makes children all the time: samples are of the program's own threads alone.
func Forks(t *testing.T, sample func(pid int, end func(*atomic.Int64)) sampler.Stats) {
	p := ctest.Run(t, forkingProgram)
	got := sample(p.PID, func(seen *atomic.Int64) {
		UntilSamples(500)(seen)
		p.In.Write([]byte("x"))
	})
	children, odd := p.Number(t), p.Number(t)
	t.Logf("%d children; %d samples, lost %v", children, got.Taken, got.Lost)
	if children < 20 || odd != 0 || got.Taken < 500 {
		t.Errorf("%d children, %d with something odd, %d samples", children, odd, got.Taken)
	}
	ctest.Eventually(t, "no process traces it",
		func() bool { return ctest.TracerOf(p.PID) == 0 && ctest.State(p.PID, p.PID) == 'S' })
}

// forkingProgram forks and vforks as fast as it can, until it is told to end. Each child works for a moment and
// checks that no tracer holds it, and its parent waits for it. At the end the program prints how many children there
// were, and how many met something odd.
const forkingProgram = `
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <unistd.h>
static int traced(void) {
	char b[4096], *at;
	int fd = open("/proc/self/status", O_RDONLY), n = read(fd, b, sizeof b - 1);
	b[n < 0 ? 0 : n] = 0;
	at = strstr(b, "TracerPid:");
	return at == 0 || atoi(at + 10) != 0;
}
static int odd(int pid) {
	int status;
	return pid <= 0 || waitpid(pid, &status, 0) != pid || status != 0;
}
int main(int argc, char **argv) {
	if (argc > 1) return traced();
	struct pollfd told = { 0, POLLIN, 0 };
	ready();
	long children = 0, odds = 0;
	while (poll(&told, 1, 0) == 0) {
		int pid = fork();
		if (pid == 0) {
			for (volatile int i = 0; i < 300000; i++);
			_exit(traced());
		}
		odds += odd(pid);
		char *args[] = { argv[0], "child", 0 };
		char *none[] = { 0 };
		odds += posix_spawn(&pid, "/proc/self/exe", 0, 0, args, none) != 0 || odd(pid);
		children += 2;
	}
	say(children);
	say(odds);
	pause();
}`
