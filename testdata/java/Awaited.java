package truth;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads that wait for what others compute.
 *
 * Thread "NAME-waits" waits for a result. If there is a thread "NAME-works", that one computes it; otherwise no thread
 * does, or another one may do it as well. "outer-works" waits itself, for "inner-works".
 */
public final class Awaited {
    static final CountDownLatch never = new CountDownLatch(1);
    static final CompletableFuture<Object> kept = new CompletableFuture<>();

    private Awaited() {}

    public static void main(String[] args) throws Exception {
        FutureTask<Object> task = new FutureTask<>(Awaited::work);
        start("task-works", task);
        waits("task", task::get);

        FutureTask<Object> queued = new FutureTask<>(Awaited::work);
        waits("queued", queued::get);

        CompletableFuture<Object> supply = CompletableFuture.supplyAsync(Awaited::work, on("supply-works"));
        waits("supply", supply::join);

        CompletableFuture<Object> chained = CompletableFuture.supplyAsync(Awaited::work, on("chained-works"))
            .thenApply(x -> x).thenCompose(x -> kept).thenCombine(kept, (x, y) -> x).exceptionally(e -> null);
        waits("chained", chained::get);

        // The first part is done, and another thread runs the second.
        CompletableFuture<Object> apply = CompletableFuture.completedFuture("done")
            .thenApplyAsync(x -> work(), on("apply-works"));
        waits("apply", () -> CompletableFuture.allOf(apply, kept).join());

        CompletableFuture<Object> any = CompletableFuture.supplyAsync(Awaited::work, on("one-of-any"));
        waits("any", () -> CompletableFuture.anyOf(any, kept).join());
        waits("either", () -> any.applyToEither(kept, x -> x).join());
        waits("none", kept::join);

        CompletableFuture<Object> inner = CompletableFuture.supplyAsync(Awaited::work, on("inner-works"));
        waits("outer", CompletableFuture.supplyAsync(() -> {
            CompletableFuture<Object> rest = inner.thenApply(x -> x);
            return new Object[] {rest.join(), rest, kept};
        }, on("outer-works"))::join);

        Control.serve((line, out) -> Control.check(false, line), () -> {});
    }

    static Object work() {
        while (never.getCount() > 0) {
            LockSupport.park(never);
        }
        return never;
    }

    interface Wait {
        Object run() throws Exception;
    }

    static void waits(String name, Wait wait) {
        start(name + "-waits", () -> {
            try {
                wait.run();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
    }

    static Executor on(String name) {
        return work -> start(name, work);
    }

    static void start(String name, Runnable work) {
        Thread t = new Thread(work, name);
        t.setDaemon(true);
        t.start();
    }
}
