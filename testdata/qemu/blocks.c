/* A plugin of qemu-user (qemu's docs/devel/tcg-plugins.rst): counts how often each block of code is executed.
 *
 *   qemu-aarch64 -plugin blocks.so,name=/dir/NAME ...
 *
 * It counts from the moment at which there is a file /dir/NAME.from, to that of /dir/NAME.to. Then it writes
 * /dir/NAME.blocks: for each block its address, how often it ran, and its instructions. What qemu declares in
 * qemu-plugin.h stands here, since Debian has no package with that header.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct qemu_plugin_tb;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t, void (*)(uint64_t, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, enum qemu_plugin_op, void *, uint64_t);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { MAX = 1 << 22 };
static struct { uint64_t at, count, before, instructions; } *blocks;
static uint64_t used;
static const char *name;

static uint64_t known(void) {
    uint64_t n = __atomic_load_n(&used, __ATOMIC_SEQ_CST);
    return n < MAX ? n : MAX;
}

/* A block that is translated again has a counter of its own: the code may be another one. */
static void translated(uint64_t id, struct qemu_plugin_tb *tb) {
    uint64_t n = __atomic_fetch_add(&used, 1, __ATOMIC_SEQ_CST);
    if (n >= MAX) {
        return;
    }
    blocks[n].at = qemu_plugin_tb_vaddr(tb);
    blocks[n].instructions = qemu_plugin_tb_n_insns(tb);
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &blocks[n].count, 1);
}

static char *file(const char *ending) {
    char *f = NULL;
    return asprintf(&f, "%s.%s", name, ending) < 0 ? NULL : f;
}

static void await(const char *ending) {
    char *f = file(ending);
    while (access(f, F_OK)) {
        usleep(50000);
    }
    free(f);
}

static void *count(void *unused) {
    await("from");
    for (uint64_t i = 0, n = known(); i < n; i++) {
        blocks[i].before = blocks[i].count;
    }
    await("to");
    char *part = file("part"), *whole = file("blocks");
    FILE *out = fopen(part, "w");
    if (out == NULL) {
        abort();
    }
    for (uint64_t i = 0, n = known(); i < n; i++) {
        uint64_t times = blocks[i].count - blocks[i].before;
        if (times != 0) {
            fprintf(out, "%lx %lu %lu\n", blocks[i].at, times, blocks[i].instructions);
        }
    }
    fclose(out);
    rename(part, whole);
    return NULL;
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const void *info, int n, char **args) {
    pthread_t thread;
    for (int i = 0; i < n; i++) {
        if (!strncmp(args[i], "name=", 5)) {
            name = strdup(args[i] + 5);
        }
    }
    blocks = calloc(MAX, sizeof *blocks);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return name == NULL || blocks == NULL || pthread_create(&thread, NULL, count, NULL);
}
