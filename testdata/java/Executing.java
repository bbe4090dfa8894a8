package truth;

import com.zaxxer.hikari.pool.HikariPool;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Executors whose threads and queues are known. Virtual threads need JDK 21; this is compiled for 8, hence the
 * reflection.
 */
public final class Executing {
    private static final CountDownLatch END = new CountDownLatch(1);
    private static final AtomicInteger BLOCKED = new AtomicInteger();

    private Executing() {}

    /** A task that never ends, and can be told from others in a queue of priorities. */
    static final class Forever implements Runnable, Comparable<Forever> {
        @Override
        public void run() {
            BLOCKED.incrementAndGet();
            try {
                END.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        public int compareTo(Forever other) {
            return 0;
        }
    }

    /** A subclass with fields of the names that ThreadPoolExecutor has. */
    static final class Shadowing extends ThreadPoolExecutor {
        final BlockingQueue<Runnable> workQueue = new LinkedBlockingQueue<>();
        final int maximumPoolSize = 77;
        long completedTaskCount = 99;

        Shadowing(int n, BlockingQueue<Runnable> queue, ThreadFactory factory) {
            super(n, n, 0, TimeUnit.SECONDS, queue, factory);
        }
    }

    /** A thread of its own that knows an executor, and does not run for it. */
    static final class Bystander implements Runnable {
        final ExecutorService delegate;

        Bystander(ExecutorService e) {
            delegate = e;
        }

        @Override
        public void run() {
            new Forever().run();
        }
    }

    /** A thread that has something in a variable while it waits. */
    static void hold(String name, Object held) {
        daemon(() -> {
            Object mine = held;
            new Forever().run();
            mine.hashCode();
        }, name).start();
    }

    static ThreadPoolExecutor pool(String name, int n, BlockingQueue<Runnable> queue) {
        AtomicLong number = new AtomicLong();
        return new Shadowing(n, queue, r -> daemon(() -> r.run(), name + number.incrementAndGet()));
    }

    static Thread daemon(Runnable r, String name) {
        Thread t = new Thread(r, name);
        t.setDaemon(true);
        return t;
    }

    static void block(ThreadPoolExecutor e, int tasks) {
        for (int i = 0; i < tasks; i++) {
            e.execute(new Forever());
        }
    }

    public static void main(String[] args) throws Exception {
        ThreadPoolExecutor linked = pool("linked-", 4, new LinkedBlockingQueue<>(100));
        for (int i = 0; i < 5; i++) {
            linked.submit(() -> {}).get();
        }
        block(linked, 4 + 7);
        block(pool("array-", 2, new ArrayBlockingQueue<>(3)), 2 + 3);
        block(pool("handed-", 2, new SynchronousQueue<>()), 2);
        block(pool("deque-", 3, new LinkedBlockingDeque<>()), 3 + 2);
        block(pool("priority-", 2, new PriorityBlockingQueue<>()), 2 + 6);
        pool("idle-", 3, new LinkedBlockingQueue<>()).prestartAllCoreThreads();
        daemon(new Bystander(linked), "bystander-1").start();

        ScheduledThreadPoolExecutor timed = new ScheduledThreadPoolExecutor(1, r -> daemon(r, "timed-1"));
        timed.execute(new Forever());
        timed.schedule(new Forever(), 1, TimeUnit.MILLISECONDS);
        timed.schedule(new Forever(), 1, TimeUnit.HOURS);

        ForkJoinPool fork = new ForkJoinPool(2);
        for (int i = 0; i < 2 + 9; i++) {
            fork.execute(new Forever());
        }
        HikariPool stock = new HikariPool("Stock", 10, 8, 6, 21);
        stock.keepHouse();
        hold("holder-1", stock.proxy(3, true));
        hold("closed-1", stock.proxy(4, false)); // it has given it back
        hold("early-1", stock.proxy(7, true)); // this one is not lent
        int blocked = 4 + 2 + 2 + 3 + 2 + 1 + 1 + 2 + 3;
        if (args.length > 0) {
            virtual("First");
            virtual("Second");
            blocked += 2;
        }
        while (BLOCKED.get() < blocked) {
            Thread.sleep(1);
        }
        for (int i = 0; i < 5 && args.length > 0; i++) {
            virtual(null);
        }
        Control.serve((line, out) -> System.gc(), () -> {});
    }

    /** Virtual threads that are in a class's initialisation keep their carriers while they wait. */
    static final class First {
        static {
            new Forever().run();
        }
    }

    static final class Second {
        static {
            new Forever().run();
        }
    }

    private static void virtual(String name) throws Exception {
        Runnable r = () -> {
            try {
                if (name != null) {
                    Class.forName("truth.Executing$" + name);
                }
            } catch (ClassNotFoundException e) {
                throw new IllegalStateException(e);
            }
        };
        Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, r);
    }
}
