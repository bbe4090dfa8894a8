package truth;

import java.util.concurrent.locks.LockSupport;

/**
 * Sick: virtual threads wait within class initialisers, where they cannot give up their carriers. There are two carriers
 * (-Djdk.virtualThreadScheduler.parallelism=2).
 * Well: they wait outside.
 * Needs JDK 21; it is compiled for 8, hence the reflection.
 */
public final class Pins {
    static volatile boolean sick;

    static void await() {
        while (true) LockSupport.parkNanos(60_000_000_000L);
    }

    static final class First {
        static {
            if (sick) await();
        }

        static void use() {}
    }

    static final class Second {
        static {
            if (sick) await();
        }

        static void use() {}
    }

    public static void main(String[] args) throws Exception {
        sick = Ward.sick(args);
        start(() -> {
            First.use();
            await();
        });
        start(() -> {
            Second.use();
            await();
        });
        for (int i = 0; i < 20; i++) start(Pins::await);
        Thread.sleep(500);
        Ward.serve();
    }

    private static void start(Runnable work) throws Exception {
        Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
    }
}
