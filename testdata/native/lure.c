/*
 * lure ROOT LIBRARY [OTHER]: a program that looks like a JVM in a container. It takes ROOT for its root in a mount
 * namespace of its own ("/" leaves it where it is), maps LIBRARY as a loader would, and then puts OTHER, if given, in
 * LIBRARY's place. It says READY and ends with its input.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fails(const char *what) {
    perror(what);
    return 1;
}

static void *rest(void *unused) {
    pthread_setname_np(pthread_self(), "VM Thread");
    for (;;)
        pause();
    return unused;
}

static int enter(const char *root) {
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount(root, root, NULL, MS_BIND, NULL))
        return fails("mount");
    if (chdir(root) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/"))
        return fails("pivot_root");
    return mount("proc", "/proc", "proc", 0, NULL) ? fails("proc") : 0;
}

int main(int argc, char **argv) {
    if (argc < 3 || (strcmp(argv[1], "/") && enter(argv[1])))
        return 1;
    int fd = open(argv[2], O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) || mmap(NULL, st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
        return fails(argv[2]);
    close(fd);
    if (argc > 3 && rename(argv[3], argv[2]))
        return fails(argv[3]);
    pthread_t thread;
    prctl(PR_SET_NAME, "java");
    if (pthread_create(&thread, NULL, rest, NULL))
        return fails("thread");
    puts("READY");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
