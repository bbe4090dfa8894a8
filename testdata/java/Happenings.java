package truth;

import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;

/**
 * Does things that are counted, so many times and so many a second: "exceptions 1000 1000", "classes 200 1000",
 * "threads 200 1000", "gcs 5 100", "maps 200 1000": pieces of a file are mapped, of one to seven pages.
 * "mallocs 1000 500": pieces of 1,000 bytes of malloc, of which each tenth is never given back.
 */
public final class Happenings {
    static volatile Object sink;

    private Happenings() {}

    public static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    public static final class Started extends Thread {
        @Override
        public void run() {
            sink = this;
        }
    }

    /** What each loader defines anew. */
    public static final class Tiny {}

    static final class Loader extends ClassLoader {
        Class<?> define(byte[] code) {
            return defineClass("truth.Happenings$Tiny", code, 0, code.length);
        }
    }

    interface Deed {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        byte[] code = codeOf("Happenings$Tiny.class");
        Control.serve((command, out) -> {
            String[] words = command.split(" ");
            int times = Integer.parseInt(words[1]);
            int perSecond = Integer.parseInt(words[2]);
            if (words[0].equals("exceptions")) {
                repeat(times, perSecond, Happenings::fail);
            } else if (words[0].equals("classes")) {
                repeat(times, perSecond, () -> sink = new Loader().define(code));
            } else if (words[0].equals("threads")) {
                repeat(times, perSecond, Happenings::begin);
            } else if (words[0].equals("gcs")) {
                repeat(times, perSecond, System::gc);
            } else if (words[0].equals("maps")) {
                repeat(times, perSecond, Happenings::map);
            } else if (words[0].equals("mallocs")) {
                repeat(times, perSecond, Happenings::malloc);
            } else {
                throw new IllegalArgumentException(command);
            }
        }, () -> {});
    }

    static void repeat(int times, int perSecond, Deed deed) throws Exception {
        long began = System.nanoTime();
        for (int i = 0; i < times; i++) {
            deed.run();
            long ahead = i * 1_000_000_000L / perSecond - (System.nanoTime() - began);
            if (ahead > 1_000_000) {
                Thread.sleep(ahead / 1_000_000);
            }
        }
    }

    static void fail() {
        try {
            throw new Failure();
        } catch (Failure f) {
            sink = f;
        }
    }

    static void begin() throws Exception {
        Thread t = new Started();
        t.start();
        t.join();
    }

    static final List<Object> mapped = new ArrayList<>();
    static FileChannel file;

    static void map() throws Exception {
        if (file == null) {
            Path path = Files.createTempFile("happenings", ".mapped");
            file = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE);
            Files.delete(path);
        }
        mapped.add(file.map(FileChannel.MapMode.READ_WRITE, 0, (1 + mapped.size() % 7) * 4096));
    }

    private static int mallocs;
    private static MemoryTruth.Malloc malloc;

    static void malloc() throws Exception {
        if (malloc == null) {
            malloc = new MemoryTruth.Malloc();
        }
        if (++mallocs % 10 == 0) {
            leak();
        } else {
            passing();
        }
    }

    static void leak() throws Exception {
        malloc.piece(1000);
    }

    static void passing() throws Exception {
        malloc.free(malloc.piece(1000));
    }

    static byte[] codeOf(String name) throws Exception {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        try (InputStream in = Happenings.class.getResourceAsStream(name)) {
            byte[] piece = new byte[4096];
            for (int n = in.read(piece); n >= 0; n = in.read(piece)) {
                all.write(piece, 0, n);
            }
        }
        return all.toByteArray();
    }
}
