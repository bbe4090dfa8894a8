package truth;

import java.io.RandomAccessFile;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Proves: memory is where the program has put it.
 *
 * Arguments: a file, MB of direct buffers (1 MB each), MB of the file that are mapped and touched, MB that malloc gives
 * in pieces of 1 KB, threads, KB that each of them touches of its stack. "free" gives back every second piece of malloc.
 * "leak MB" keeps so many MB of direct buffers more.
 */
public final class MemoryTruth {
    private static final int MB = 1 << 20;

    private MemoryTruth() {}

    private static final List<ByteBuffer> BUFFERS = new ArrayList<>();
    private static MappedByteBuffer mapped;

    public static void main(String[] args) throws Exception {
        direct(Integer.parseInt(args[1]));
        map(args[0], Integer.parseInt(args[2]));
        Malloc malloc = new Malloc();
        long[] pieces = new long[Integer.parseInt(args[3]) * 1024];
        for (int i = 0; i < pieces.length; i++) {
            pieces[i] = malloc.piece(1000);
        }
        int threads = Integer.parseInt(args[4]);
        int depth = Integer.parseInt(args[5]) * 1024;
        CountDownLatch deep = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            Thread t = new Thread(null, () -> descend(depth, deep), "deep-" + i, 4L << 20);
            t.setDaemon(true);
            t.start();
        }
        deep.await();
        Control.serve((command, out) -> {
            String[] words = command.split(" ");
            switch (words[0]) {
                case "free":
                    for (int i = 0; i < pieces.length; i += 2) {
                        malloc.free(pieces[i]);
                    }
                    break;
                case "leak": direct(Integer.parseInt(words[1])); break;
                default: throw new IllegalArgumentException(command);
            }
        }, () -> Control.check(mapped.get(0) == 1 && pieces.length >= 0, "memory is lost"));
    }

    private static void direct(int mb) {
        for (int i = 0; i < mb; i++) {
            BUFFERS.add(ByteBuffer.allocateDirect(MB));
        }
    }

    private static void map(String name, int mb) throws Exception {
        try (RandomAccessFile file = new RandomAccessFile(name, "rw")) {
            mapped = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, (long) mb * MB);
        }
        for (int i = 0; i < mapped.capacity(); i += 1024) {
            mapped.put(i, (byte) 1);
        }
    }

    /** Goes down until the stack is so many bytes deep: a frame has some 100 bytes. Then it waits for ever. */
    private static int descend(int bytes, CountDownLatch deep) {
        if (bytes <= 0) {
            deep.countDown();
            while (true) {
                java.util.concurrent.locks.LockSupport.park();
            }
        }
        return descend(bytes - 96, deep) + 1;
    }

    /** sun.misc.Unsafe, which the compiler does not know with --release. */
    static final class Malloc {
        private final Object unsafe;
        private final Method allocate;
        private final Method fill;
        private final Method free;

        Malloc() throws ReflectiveOperationException {
            Class<?> type = Class.forName("sun.misc.Unsafe");
            Field field = type.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            unsafe = field.get(null);
            allocate = type.getMethod("allocateMemory", long.class);
            fill = type.getMethod("setMemory", long.class, long.class, byte.class);
            free = type.getMethod("freeMemory", long.class);
        }

        long piece(long size) throws ReflectiveOperationException {
            long address = (long) allocate.invoke(unsafe, size);
            fill.invoke(unsafe, address, size, (byte) 1);
            return address;
        }

        void free(long address) throws ReflectiveOperationException {
            free.invoke(unsafe, address);
        }
    }
}
