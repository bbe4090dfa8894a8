package truth;

import java.io.ByteArrayOutputStream;
import java.io.InputStream;

/**
 * Sick, in a JVM that compiles all that is called (-Xcomp) into a small code cache: the same methods are loaded again and
 * again, each time by another loader that stays, until their code has no room.
 * Well: they were loaded once.
 */
public final class FullCode {
    /** Far more than there is room for: a copy takes some kilobytes. */
    private static final int COPIES = 2000;

    public static final class Job implements Runnable {
        static volatile long sink;

        static long a(int n) { long x = n; for (int i = 0; i < n; i++) x = x * 31 + i; return x; }
        static long b(int n) { long x = n; for (int i = 0; i < n; i++) x ^= x << 13 ^ a(i); return x; }
        static long c(int n) { long x = n; for (int i = 0; i < n; i++) x += x >>> 7 ^ b(i); return x; }
        static long d(int n) { long x = n; for (int i = 0; i < n; i++) x -= x << 5 ^ c(i); return x; }

        @Override public void run() {
            sink += a(2) + b(2) + c(2) + d(2);
        }
    }

    static final class Loader extends ClassLoader {
        Class<?> make(String name, byte[] code) {
            return defineClass(name, code, 0, code.length);
        }
    }

    static final Runnable[] kept = new Runnable[COPIES];

    public static void main(String[] args) throws Exception {
        int copies = Ward.sick(args) ? COPIES : 1;
        String name = Job.class.getName();
        byte[] code = read("/" + name.replace('.', '/') + ".class");
        for (int i = 0; i < copies; i++) {
            kept[i] = (Runnable) new Loader().make(name, code).getDeclaredConstructor().newInstance();
            kept[i].run();
        }
        Ward.serve();
    }

    private static byte[] read(String resource) throws Exception {
        try (InputStream in = FullCode.class.getResourceAsStream(resource)) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            for (int c = in.read(); c >= 0; c = in.read()) out.write(c);
            return out.toByteArray();
        }
    }
}
