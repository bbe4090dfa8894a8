package truth;

/**
 * Sick: objects have a finaliser that waits, so that the queue before it grows.
 * Well: it does nothing.
 */
public final class Finalizes {
    static volatile Object sink;
    static boolean sick;
    static volatile long done;

    static final class Handle {
        @Override protected void finalize() throws Exception {
            if (sick) Thread.sleep(100);
            done++;
        }
    }

    public static void main(String[] args) throws Exception {
        sick = Ward.sick(args);
        for (int i = 0; i < 20_000; i++) sink = new Handle();
        sink = null;
        System.gc();
        Ward.forever("user", () -> {
            for (int i = 0; i < 10; i++) sink = new Handle();
            Thread.sleep(10);
        });
        Ward.forever("asks-for-collections", () -> {
            System.gc();
            Thread.sleep(sick ? 500 : 2_000); // a pause each: on a busy machine one may take a tenth of a second
        });
        Thread.sleep(1_000);
        Ward.serve();
    }
}
