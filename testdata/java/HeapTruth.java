package truth;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Proves: what fills a heap is counted as it is, object by object.
 *
 * Argument: how many thousand objects of each kind (10). READY: the heap is at rest. Old ones were collected once, then
 * as many Young ones were made. "leak KB" adds so many KB of Leaked a second from then on, "garbage MB" makes so many MB
 * of garbage a second. "collect MS" collects the whole heap again and again, MS after each other. All go on until "rest".
 */
public final class HeapTruth {
    private HeapTruth() {}

    /** Of one size. */
    static final class Old {
        final Old next;
        final long number;

        Old(Old next, long number) {
            this.next = next;
            this.number = number;
        }
    }

    /** Like it, made later. */
    static final class Young {
        final Young next;

        Young(Young next) {
            this.next = next;
        }
    }

    /** What a leak leaves. */
    static final class Leaked {
        final Leaked next;
        final byte[] load = new byte[1000];

        Leaked(Leaked next) {
            this.next = next;
        }
    }

    private static Old old;
    private static Young young;
    private static volatile Leaked leaked;
    private static final List<Object> KEPT = new ArrayList<>();
    private static volatile long leakRate;
    private static volatile long garbageRate;
    private static volatile Object garbage;
    private static volatile long collectEvery = -1;

    public static void main(String[] args) throws Exception {
        int count = 1000 * (args.length > 0 ? Integer.parseInt(args[0]) : 10);
        for (int i = 0; i < count; i++) {
            old = new Old(old, i);
            if (i % 10 == 0) {
                KEPT.add(new long[i % 1000]);
                KEPT.add(new Object[i % 100]);
                KEPT.add(("number " + i).toCharArray());
            }
        }
        KEPT.add(new byte[3 << 20]);
        KEPT.add(new short[1 << 20]);
        System.gc();
        for (int i = 0; i < count; i++) {
            young = new Young(young);
        }
        for (Runnable work : new Runnable[] {HeapTruth::work, HeapTruth::collect}) {
            Thread worker = new Thread(work, "worker");
            worker.setDaemon(true);
            worker.start();
        }
        Control.serve((command, out) -> {
            String[] words = command.split(" ");
            switch (words[0]) {
                case "leak": leakRate = Long.parseLong(words[1]); break;
                case "garbage": garbageRate = Long.parseLong(words[1]); break;
                case "collect": collectEvery = Long.parseLong(words[1]); break;
                case "rest": leakRate = 0; garbageRate = 0; collectEvery = -1; break;
                default: throw new IllegalArgumentException(command);
            }
        }, () -> Control.check(old.number == count - 1 && young != null && KEPT.size() > count / 10, "objects are lost"));
    }

    private static void collect() {
        for (; ; ) {
            long every = collectEvery;
            if (every >= 0) {
                System.gc();
            }
            LockSupport.parkNanos(1_000_000 * (every > 0 ? every : every == 0 ? 0 : 10));
        }
    }

    /** Some times a second what is due since the last time, at most a second's. */
    private static void work() {
        double leak = 0;
        for (long last = System.nanoTime(); ; ) {
            LockSupport.parkNanos(10_000_000);
            long now = System.nanoTime();
            double passed = Math.min(1, (now - last) / 1e9);
            last = now;
            for (leak += leakRate * passed; leak >= 1; leak--) {
                leaked = new Leaked(leaked);
            }
            for (double bytes = garbageRate * 1e6 * passed; bytes > 0; bytes -= 10_000) {
                garbage = new Object[] {new byte[4000], new long[500], "x" + (long) bytes};
            }
        }
    }
}
