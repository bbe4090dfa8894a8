package truth;

import java.nio.ByteBuffer;

/**
 * Asks for native memory, and how much it asks for says which methods have called each other to get there: whoever knows
 * the number knows the stack. Some of them are interpreted with -XX:CompileCommand=exclude,truth/Encoded.interpreted.
 */
public final class Encoded {
    static volatile boolean stop;
    static volatile long count;

    private Encoded() {}

    public static void main(String[] args) throws Exception {
        Thread thread = new Thread(Encoded::run, "encoded");
        thread.setDaemon(true);
        thread.start();
        while (count < 20_000) {
            Thread.sleep(2);
        }
        pause = 200_000;
        Control.serve((command, out) -> out.println(count), () -> {
            stop = true;
            thread.join(60_000);
            Control.check(!thread.isAlive(), "it hangs");
        });
    }

    /** How many nanoseconds lie between two requests. */
    static volatile long pause;

    static void run() {
        java.util.SplittableRandom random = new java.util.SplittableRandom();
        while (!stop) {
            int code = 8 * (1 + random.nextInt(1 << 10)); // words: the JVM rounds up to these
            next(code, code, 4 + code % 17);
            count++;
            for (long until = System.nanoTime() + pause; System.nanoTime() < until; ) {}
        }
    }

    /** The testdata/oracle package draws the same numbers. */
    static long next(int code, int rest, int left) {
        if (left == 0) {
            return leaf(code);
        }
        int drawn = rest * 1103515245 + 12345;
        switch ((drawn >>> 16) & 3) {
            case 0: return compiled(code, drawn, left - 1) + 1;
            case 1: return interpreted(code, drawn, left - 1) + 2;
            case 2: return small(code, drawn, left - 1) + 3;
            default: return large(code, drawn, left - 1) + 4;
        }
    }

    static long compiled(int code, int rest, int left) {
        return next(code, rest, left) ^ left;
    }

    static long interpreted(int code, int rest, int left) {
        return next(code, rest, left) + left;
    }

    static long small(int code, int rest, int left) {
        return next(code, rest, left);
    }

    static long large(int code, int rest, int left) {
        long sum = 0;
        for (int i = 0; i < left; i++) {
            sum += i * (long) code;
        }
        return sum + next(code, rest, left);
    }

    static volatile Object sink;

    static long leaf(int code) {
        sink = ByteBuffer.allocateDirect(code);
        return code;
    }
}
