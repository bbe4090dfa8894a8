package truth;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.Writer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What a thread says of its own stack, in a file mapped into memory, so that it can be read from
 * outside while the thread is stopped at any instruction.
 *
 * The file (numbers little-endian; jvmtest/shadow.go reads it):
 *
 *   0     8 bytes  "SHADOW01"
 *   8     u32      number of regions
 *   12    u32      size of a region in bytes
 *   16    u32      most entries of a region
 *   4096  region 0, then the others
 *
 * A region belongs to one thread:
 *
 *   0     u32      tid of the carrier, as the kernel counts
 *   4     u32      state: 0 not started, 1 running (only now is the rest true), 2 ended
 *   8     u32      depth: number of entries
 *   12    u32      seed of the call tree that runs, to find it again
 *   16    entries, the root first: u32 id of the method, u32 line of the call that it is making
 *
 * The entry is written before the depth that includes it, and the line before the call, with a barrier
 * for the compiler in between: a stopped thread has made its stores in the order of its instructions,
 * and only the compiler could have changed that order.
 *
 * Beside the file, FILE.ids has a line "id TAB class.method" for each id. A name ends with "*" where
 * javac chooses the rest (lambda bodies). A method of any other name (a library's, or of this class) has
 * no entry, and is left out of the walk before the two are compared. The line of the last entry is the
 * call that the method made last or is about to make: it says nothing about where the method is now.
 */
final class ShadowStack {
    /**
     * The number of the line it stands in. jvmtest puts the numbers in before it compiles, so that they
     * come from the source text and not from the JVM whose line tables are to be checked.
     */
    static final int __LINE__ = 0;

    static final int MAX_DEPTH = 2_040;
    private static final int HEADER = 4_096;
    private static final int ENTRIES = 16;
    private static final int REGION = ENTRIES + 8 * MAX_DEPTH;
    private static final int RUNNING = 1;
    private static final int ENDED = 2;

    private static final List<String> NAMES = new ArrayList<>();

    private final ByteBuffer file;
    private final int base;
    private final AtomicInteger barrier = new AtomicInteger();
    private int depth;

    private ShadowStack(ByteBuffer file, int number) {
        this.file = file;
        this.base = HEADER + number * REGION;
    }

    /** Gives a method its id; name is class.method as a stack trace has it. */
    static synchronized int id(String name) {
        NAMES.add(name);
        return NAMES.size();
    }

    /** Makes the file, with a region for each of so many threads. */
    static ShadowStack[] create(String path, int threads) throws IOException {
        MappedByteBuffer map;
        try (RandomAccessFile file = new RandomAccessFile(path, "rw")) {
            map = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, HEADER + (long) threads * REGION);
        }
        map.order(ByteOrder.LITTLE_ENDIAN);
        map.put("SHADOW01".getBytes(StandardCharsets.US_ASCII));
        map.putInt(8, threads);
        map.putInt(12, REGION);
        map.putInt(16, MAX_DEPTH);
        ShadowStack[] stacks = new ShadowStack[threads];
        for (int i = 0; i < threads; i++) {
            stacks[i] = new ShadowStack(map, i);
        }
        return stacks;
    }

    static synchronized void writeIds(String path) throws IOException {
        try (Writer out = Files.newBufferedWriter(Paths.get(path + ".ids"), StandardCharsets.UTF_8)) {
            for (int i = 0; i < NAMES.size(); i++) {
                out.write((i + 1) + "\t" + NAMES.get(i) + "\n");
            }
        }
    }

    /** The calling thread takes this region. */
    void begin() throws IOException {
        Path self = Files.readSymbolicLink(Paths.get("/proc/thread-self")); // PID/task/TID
        file.putInt(base, Integer.parseInt(self.getFileName().toString()));
        barrier.lazySet(0);
        file.putInt(base + 4, RUNNING);
    }

    void end() {
        file.putInt(base + 4, ENDED);
    }

    void seed(int seed) {
        file.putInt(base + 12, seed);
    }

    int depth() {
        return depth;
    }

    /** The first thing that a method does. */
    void push(int id) {
        file.putLong(base + ENTRIES + 8 * depth, id);
        barrier.lazySet(0);
        file.putInt(base + 8, ++depth);
        barrier.lazySet(0);
    }

    /** Stands in the line of each call, before the call. */
    void at(int line) {
        file.putInt(base + ENTRIES + 8 * depth - 4, line);
        barrier.lazySet(0);
    }

    /** The last thing that a method does, in finally. */
    void pop() {
        barrier.lazySet(0);
        file.putInt(base + 8, --depth);
        barrier.lazySet(0);
    }

    private static Set<String> names;

    /**
     * Compares the shadow with what the JVM says of the calling thread's stack, as far down as it says
     * anything (MaxJavaStackTraceDepth). So the shadow itself is checked, and its line numbers.
     */
    void compareWithJvm() {
        StackTraceElement[] trace = new Throwable().getStackTrace();
        int entry = depth;
        for (StackTraceElement frame : trace) {
            String name = frame.getClassName() + "." + frame.getMethodName();
            name = name.replaceFirst("(\\.lambda\\$\\w+\\$)\\d+$", "$1*");
            if (!known(name)) {
                continue;
            }
            entry--;
            Control.check(entry >= 0, name + " is below the shadow's root");
            int id = file.getInt(base + ENTRIES + 8 * entry);
            int line = file.getInt(base + ENTRIES + 8 * entry + 4);
            Control.check(NAMES.get(id - 1).equals(name), name + " where the shadow has " + NAMES.get(id - 1));
            boolean top = entry == depth - 1;
            Control.check(top || frame.getLineNumber() == line, frame + " where the shadow has line " + line);
        }
        Control.check(entry == 0 || trace.length >= 1_000, "the shadow has " + entry + " methods more");
    }

    private static synchronized boolean known(String name) {
        if (names == null) {
            names = new HashSet<>(NAMES);
        }
        return names.contains(name);
    }
}
