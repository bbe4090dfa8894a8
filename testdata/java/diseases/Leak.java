package truth;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Sick: each request makes a pool, and nobody ends it.
 * Well: all requests share one.
 */
public final class Leak {
    public static void main(String[] args) {
        boolean sick = Ward.sick(args);
        ExecutorService shared = Executors.newFixedThreadPool(8, Ward.daemons("shared-"));
        int[] requests = {0};
        Ward.forever("server", () -> {
            ExecutorService pool = sick ? Executors.newFixedThreadPool(4, Ward.daemons("pool-" + requests[0]++ + "-thread-"))
                : shared;
            pool.submit(() -> 1).get();
            Thread.sleep(60);
        });
        Ward.serve();
    }
}
