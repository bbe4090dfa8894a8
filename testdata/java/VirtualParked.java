package truth;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Proves: virtual threads that no carrier runs are found in whatever way they were started, with their
 * stacks. Needs JDK 21; it is compiled for 8, hence the reflection.
 *
 * Thread number i is called "parked-i", has gone down i % 40 times, and then parks for ever (i % 4 is
 * not 0) or sleeps for an hour. They are started in turns by Thread.ofVirtual(), by an executor with a thread for
 * each task, by a pool of virtual threads, and in a flock, as structured task scopes make them (needs
 * --add-exports java.base/jdk.internal.misc=ALL-UNNAMED). Argument: how many (300). "collect" collects garbage.
 */
public final class VirtualParked {
    private VirtualParked() {}

    private static final AtomicInteger PARKED = new AtomicInteger();
    private static final CountDownLatch NEVER = new CountDownLatch(1);
    private static volatile boolean stop;

    public static void main(String[] args) throws Exception {
        int count = args.length > 0 ? Integer.parseInt(args[0]) : 300;
        List<Thread> threads = new ArrayList<>();
        Method newExecutor = Executors.class.getMethod("newThreadPerTaskExecutor", ThreadFactory.class);
        ThreadFactory factory = task -> {
            Thread thread = unstarted(task);
            synchronized (threads) {
                threads.add(thread);
            }
            return thread;
        };
        ExecutorService each = (ExecutorService) newExecutor.invoke(null, factory);
        ExecutorService pool = Executors.newFixedThreadPool(count, factory);
        Class<?> flockClass = Class.forName("jdk.internal.misc.ThreadFlock");
        Object flock = flockClass.getMethod("open", String.class).invoke(null, "flock");
        Method startInFlock = flockClass.getMethod("start", Thread.class);
        for (int i = 0; i < count; i++) {
            int number = i;
            Runnable task = () -> {
                Thread.currentThread().setName("parked-" + number);
                down(number % 40, number % 4 == 0);
            };
            switch (i / 4 % 4) {
                case 0: factory.newThread(task).start(); break;
                case 1: each.execute(task); break;
                case 2: pool.execute(task); break;
                default: startInFlock.invoke(flock, factory.newThread(task));
            }
        }
        while (PARKED.get() < count || !allWait(threads)) {
            Thread.sleep(5);
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("collect"), "no such command: " + command);
            System.gc();
        }, () -> {
            stop = true;
            NEVER.countDown();
            for (Thread thread : threads) {
                if (thread.getState() == Thread.State.TIMED_WAITING) {
                    thread.interrupt();
                }
                LockSupport.unpark(thread);
            }
            pool.shutdown();
            for (Thread thread : threads) {
                thread.join(20_000);
                Control.check(!thread.isAlive(), thread + " hangs");
            }
            flockClass.getMethod("close").invoke(flock);
        });
    }

    private static boolean allWait(List<Thread> threads) {
        synchronized (threads) {
            for (Thread thread : threads) {
                if (thread.getState() != Thread.State.WAITING && thread.getState() != Thread.State.TIMED_WAITING) {
                    return false;
                }
            }
        }
        return true;
    }

    private static void down(int levels, boolean timed) {
        if (levels > 0) {
            down(levels - 1, timed);
        } else {
            bottom(timed);
        }
    }

    private static void bottom(boolean timed) {
        PARKED.incrementAndGet();
        try {
            if (timed) {
                Thread.sleep(3_600_000);
            } else {
                while (!stop) {
                    LockSupport.park();
                }
            }
        } catch (InterruptedException told) {
            // the end
        }
    }

    private static Thread unstarted(Runnable task) {
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            return (Thread) Class.forName("java.lang.Thread$Builder").getMethod("unstarted", Runnable.class).invoke(builder, task);
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
