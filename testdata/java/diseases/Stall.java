package truth;

/**
 * Two threads: one asks for collections, the other computes in a long loop over an int.
 * Sick by a flag: with -XX:-UseCountedLoopSafepoints that loop has no safepoint poll, and all threads wait for its end.
 * Well: the loop has polls.
 */
public final class Stall {
    static volatile long sink;

    static long loop(long[] table) {
        long x = 1;
        for (int i = 0; i < Integer.MAX_VALUE; i++) x = x * 31 + table[i & 1023];
        return x;
    }

    public static void main(String[] args) throws Exception {
        Ward.sick(args);
        long[] table = new long[1024];
        Ward.forever("loop", () -> sink = loop(table));
        Ward.forever("asks-for-collections", () -> {
            System.gc();
            Thread.sleep(20);
        });
        Thread.sleep(2_000); // until the loop is compiled, on its way (OSR)
        Ward.serve();
    }
}
