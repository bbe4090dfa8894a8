package truth;

import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.Socket;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads that wait, and know what wakes them and for how long they waited.
 *
 * Thread "KIND-waits-I" waits in awaitKIND, and thread "KIND-wakes-I" ends that in wakeKIND. Kinds are monitor (wait and
 * notify), enter (a monitor that the other one holds), unpark, queue, and virtual: a queue into which a virtual thread
 * puts (JDK 21 and later). "sleep" is ended by the timer, and "socket" by the process that listens at the port that the
 * program is given: it writes a byte at a time.
 *
 * "wait MILLIS" lets all of them do that for so long. The answer is a line for each thread that waits: its name, how
 * often it waited, and for how many nanoseconds, without the time for which it had a CPU.
 */
public final class Wakers {
    static final int EACH = 2;
    static final int PAUSE = 15; // ms
    static final String[] KINDS = {"monitor", "enter", "unpark", "queue", "sleep", "socket", "virtual"};

    /** A thread that waits, and what ends its waits. */
    static final class Pair {
        final String kind;
        final int number;
        final Object lock = new Object();
        final LinkedBlockingQueue<Integer> queue = new LinkedBlockingQueue<>();
        final AtomicBoolean flag = new AtomicBoolean();
        final CountDownLatch begun = new CountDownLatch(1);
        final Waiting.Clocks clocks = new Waiting.Clocks();
        volatile boolean over;
        InputStream in;
        Thread waiter;
        Thread waker;
        long waits;

        Pair(String kind, int number) {
            this.kind = kind;
            this.number = number;
        }

        void waits() throws Exception {
            begun.countDown();
            while (!over) {
                clocks.begin();
                await(this);
                clocks.end();
                waits++;
                if (kind.equals("enter")) {
                    Thread.sleep(PAUSE / 2); // the other one takes the lock meanwhile
                }
            }
        }

        void wakes(long end) throws Exception {
            begun.await();
            for (boolean last = false; !last;) {
                Thread.sleep(PAUSE + number);
                over = last = System.nanoTime() >= end;
                wake(this);
            }
        }
    }

    private Wakers() {}

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        Control.serve((line, out) -> run(line, port, out), () -> {});
    }

    private static void run(String line, int port, PrintStream out) throws Exception {
        String[] word = line.split(" ");
        Control.check(word[0].equals("wait"), line);
        long end = System.nanoTime() + Long.parseLong(word[1]) * 1_000_000;
        Pair[] pairs = new Pair[KINDS.length * EACH];
        for (int i = 0; i < pairs.length; i++) {
            Pair p = new Pair(KINDS[i / EACH], i % EACH);
            if (p.kind.equals("virtual") && !startVirtual(p, end)) {
                continue;
            }
            if (p.kind.equals("socket")) {
                p.in = new Socket(InetAddress.getLoopbackAddress(), port).getInputStream();
            }
            pairs[i] = p;
            p.waiter = started(p, "waits", p::waits);
            if (p.kind.equals("sleep") || p.kind.equals("socket")) {
                p.waker = started(p, "ends", () -> {
                    Thread.sleep(Math.max(0, (end - System.nanoTime()) / 1_000_000));
                    p.over = true;
                });
            } else if (!p.kind.equals("virtual")) {
                p.waker = started(p, "wakes", () -> p.wakes(end));
            }
        }
        for (Pair p : pairs) {
            if (p != null) {
                p.waiter.join();
                p.waker.join();
                out.println(p.waiter.getName() + " " + p.waits + " " + (p.clocks.waited - p.clocks.charged));
            }
        }
    }

    interface Work {
        void run() throws Exception;
    }

    private static Runnable quietly(Work work) {
        return () -> {
            try {
                work.run();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        };
    }

    private static Thread started(Pair p, String does, Work work) {
        Thread t = new Thread(quietly(work), p.kind + "-" + does + "-" + p.number);
        t.setDaemon(true);
        t.start();
        return t;
    }

    /** By reflection: the program is compiled for 8. */
    private static boolean startVirtual(Pair p, long end) throws Exception {
        Object builder;
        try {
            builder = Thread.class.getMethod("ofVirtual").invoke(null);
        } catch (NoSuchMethodException old) {
            return false;
        }
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        builder = type.getMethod("name", String.class).invoke(builder, p.kind + "-wakes-" + p.number);
        Method start = type.getMethod("start", Runnable.class);
        p.waker = (Thread) start.invoke(builder, quietly(() -> p.wakes(end)));
        return true;
    }

    static void await(Pair p) throws Exception {
        switch (p.kind) {
            case "monitor": awaitMonitor(p); break;
            case "enter": awaitEnter(p); break;
            case "unpark": awaitUnpark(p); break;
            case "sleep": awaitSleep(); break;
            case "socket": awaitSocket(p); break;
            default: awaitQueue(p);
        }
    }

    static void wake(Pair p) throws Exception {
        switch (p.kind) {
            case "monitor": wakeMonitor(p); break;
            case "enter": wakeEnter(p); break;
            case "unpark": wakeUnpark(p); break;
            default: wakeQueue(p);
        }
    }

    static void awaitMonitor(Pair p) throws Exception {
        synchronized (p.lock) {
            while (!p.flag.getAndSet(false)) {
                p.lock.wait();
            }
        }
    }

    static void wakeMonitor(Pair p) {
        synchronized (p.lock) {
            p.flag.set(true);
            p.lock.notify();
        }
    }

    static void awaitEnter(Pair p) {
        synchronized (p.lock) {
            p.flag.set(false);
        }
    }

    static void wakeEnter(Pair p) throws Exception {
        synchronized (p.lock) {
            Thread.sleep(PAUSE);
        }
    }

    static void awaitUnpark(Pair p) {
        while (!p.flag.getAndSet(false)) {
            LockSupport.park();
        }
    }

    static void wakeUnpark(Pair p) {
        p.flag.set(true);
        LockSupport.unpark(p.waiter);
    }

    static void awaitQueue(Pair p) throws Exception {
        p.queue.take();
    }

    static void wakeQueue(Pair p) throws Exception {
        p.queue.put(p.number);
    }

    static void awaitSleep() throws Exception {
        Thread.sleep(PAUSE);
    }

    static void awaitSocket(Pair p) throws Exception {
        Control.check(p.in.read() >= 0, "the other process ended");
    }
}
