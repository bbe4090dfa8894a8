package truth;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.Writer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A shadow stack, as ShadowStack describes it, of one thread that runs Java and C: its depth is kept in
 * the file alone, where testdata/native/jnichain.c finds it at the same places.
 */
final class JniShadow {
    private static final int HEADER = 4_096;
    private static final int ENTRIES = 16;
    private static final int MAX_DEPTH = 1_000;
    private static final int REGION = ENTRIES + 8 * MAX_DEPTH;

    private static final Map<Integer, String> NAMES = new LinkedHashMap<>();

    /** The thread's region, for C. */
    final ByteBuffer region;
    private final AtomicInteger barrier = new AtomicInteger();

    JniShadow(String path) throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(path, "rw")) {
            FileChannel channel = file.getChannel();
            ByteBuffer header = channel.map(FileChannel.MapMode.READ_WRITE, 0, HEADER).order(ByteOrder.LITTLE_ENDIAN);
            header.put("SHADOW01".getBytes(StandardCharsets.US_ASCII));
            header.putInt(8, 1);
            header.putInt(12, REGION);
            header.putInt(16, MAX_DEPTH);
            region = channel.map(FileChannel.MapMode.READ_WRITE, HEADER, REGION).order(ByteOrder.LITTLE_ENDIAN);
        }
        try (Writer out = Files.newBufferedWriter(Paths.get(path + ".ids"), StandardCharsets.UTF_8)) {
            for (Map.Entry<Integer, String> name : NAMES.entrySet()) {
                out.write(name.getKey() + "\t" + name.getValue() + "\n");
            }
        }
    }

    /** Names a method or function, before the file is made. */
    static int id(int id, String name) {
        Control.check(NAMES.put(id, name) == null, "two with the id " + id);
        return id;
    }

    /** The calling thread takes the file. */
    void begin() throws IOException {
        String self = Files.readSymbolicLink(Paths.get("/proc/thread-self")).getFileName().toString();
        region.putInt(0, Integer.parseInt(self));
        barrier.lazySet(0);
        region.putInt(4, 1);
    }

    void end() {
        region.putInt(4, 2);
    }

    void seed(int seed) {
        region.putInt(12, seed);
    }

    int depth() {
        return region.getInt(8);
    }

    /** The first thing that a method does. */
    void push(int id) {
        int depth = region.getInt(8);
        region.putLong(ENTRIES + 8 * depth, id);
        barrier.lazySet(0);
        region.putInt(8, depth + 1);
        barrier.lazySet(0);
    }

    /** Stands in the line of each call, before the call. */
    void at(int line) {
        region.putInt(ENTRIES + 8 * region.getInt(8) - 4, line);
        barrier.lazySet(0);
    }

    /** The last thing that a method does, in finally. */
    void pop() {
        barrier.lazySet(0);
        region.putInt(8, region.getInt(8) - 1);
        barrier.lazySet(0);
    }
}
