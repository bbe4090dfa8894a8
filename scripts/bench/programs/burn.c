// burn: programs that only spin, so that others have to wait for a CPU.
//
//   burn PROGRAMS   prints "ready"; all end when its standard input ends, or when it ends
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
	pid_t self = getpid();
	for (int n = argc > 1 ? atoi(argv[1]) : 1; n > 0; n--) {
		pid_t child = fork();
		if (child < 0) {
			perror("fork"); // those that there are end with this program
			return 1;
		}
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
			if (getppid() != self) // it had ended before
				return 0;
			for (volatile int spin = 1; spin;)
				;
		}
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
