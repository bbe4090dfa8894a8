package truth;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Proves: virtual threads that no carrier runs are counted where they wait, as many as there are. Needs JDK 21; it is
 * compiled for 8, hence the reflection.
 *
 *   threads   how many wait (2000): 6 of 10 for a latch, 2 of 10 sleep, 1 of 10 for a socket, 1 of 10 for a lock. Each
 *             has gone down number % 30 times.
 *   movers    how many never rest (40): each goes down twelve levels, through zero or one, sleeps there for a
 *             millisecond, computes, and comes back. The first eight levels are random bits, the last four their sum in
 *             halves. So a stack that is put together from two of its stacks is recognised.
 *   spinners  platform threads that compute, beside them (0)
 *
 * All movers allocate, so that collections are frequent. The command "counts" prints "wait n" for each wait. "move n" lets n that wait for the latch sleep. "stacks" prints one
 * thread's stack for each wait, as the JVM tells it.
 */
public final class VirtualWaits {
    private VirtualWaits() {}

    private static final String[] WAITS = {"latch", "sleep", "socket", "lock"};
    private static final AtomicInteger[] THERE = {new AtomicInteger(), new AtomicInteger(), new AtomicInteger(), new AtomicInteger()};
    private static final Thread[] FIRST = new Thread[WAITS.length];
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final AtomicInteger TO_MOVE = new AtomicInteger();
    private static volatile CountDownLatch latch = new CountDownLatch(1);
    private static volatile boolean stop;
    private static volatile long sink;

    public static void main(String[] args) throws Exception {
        int count = args.length > 0 ? Integer.parseInt(args[0]) : 2000;
        int movers = args.length > 1 ? Integer.parseInt(args[1]) : 40;
        int spinners = args.length > 2 ? Integer.parseInt(args[2]) : 0;
        LOCK.lock();
        List<Thread> all = new ArrayList<>();
        List<Socket> sockets = new ArrayList<>();
        ServerSocket listener = new ServerSocket(0, 512, InetAddress.getLoopbackAddress());
        for (int i = 0; i < count; i++) {
            int number = i;
            int what = i % 10 < 6 ? 0 : i % 10 < 8 ? 1 : i % 10 < 9 ? 2 : 3;
            Socket ours = what == 2 ? new Socket(listener.getInetAddress(), listener.getLocalPort()) : null;
            if (ours != null) {
                sockets.add(ours);
                sockets.add(listener.accept());
            }
            Thread thread = start("wait-" + i, () -> down(number % 30, number, what, ours));
            all.add(thread);
            if (FIRST[what] == null) {
                FIRST[what] = thread;
            }
        }
        for (int i = 0; i < movers; i++) {
            long seed = i + 1;
            all.add(start("mover-" + i, () -> move(seed)));
        }
        for (int i = 0; i < spinners; i++) {
            Thread spinner = new Thread(() -> {
                while (!stop) {
                    sink += burn(sink);
                }
            }, "spinner-" + i);
            spinner.setDaemon(true);
            spinner.start();
        }
        awaitAll(all.subList(0, count));
        Control.serve((command, out) -> {
            if (command.equals("counts")) {
                for (int i = 0; i < WAITS.length; i++) {
                    out.println(WAITS[i] + " " + THERE[i].get());
                }
            } else if (command.equals("stacks")) {
                for (int i = 0; i < WAITS.length; i++) {
                    out.println("WAIT " + WAITS[i]);
                    for (StackTraceElement frame : FIRST[i].getStackTrace()) {
                        out.println("FRAME " + frame.getClassName() + "." + frame.getMethodName());
                    }
                }
            } else {
                Control.check(command.startsWith("move "), "no such command: " + command);
                TO_MOVE.set(Integer.parseInt(command.substring(5)));
                int slept = THERE[1].get() + TO_MOVE.get();
                CountDownLatch old = latch;
                latch = new CountDownLatch(1);
                old.countDown();
                while (THERE[1].get() < slept) {
                    Thread.sleep(5);
                }
                awaitAll(all.subList(0, count));
            }
        }, () -> {
            stop = true;
            latch.countDown();
            LOCK.unlock();
            for (Socket socket : sockets) {
                socket.close();
            }
            for (Thread thread : all) {
                while (thread.isAlive()) {
                    thread.interrupt();
                    thread.join(100);
                }
            }
        });
    }

    private static void awaitAll(List<Thread> threads) throws InterruptedException {
        int at = 0;
        while (at < threads.size()) {
            Thread.State state = threads.get(at).getState();
            if (state == Thread.State.WAITING || state == Thread.State.TIMED_WAITING) {
                at++;
            } else {
                Thread.sleep(5);
            }
        }
        int sum = 0;
        for (AtomicInteger there : THERE) {
            sum += there.get();
        }
        Control.check(sum == threads.size(), sum + " of " + threads.size() + " are there");
    }

    private static void down(int levels, int number, int what, Socket socket) {
        if (levels > 0) {
            down(levels - 1, number, what, socket);
            return;
        }
        THERE[what].incrementAndGet();
        switch (what) {
            case 0:
                if (forLatch(number)) {
                    asleep();
                }
                break;
            case 1: asleep(); break;
            case 2: forSocket(socket); break;
            default: forLock();
        }
    }

    /** Returns true if this thread is to sleep instead. The first one stays: the JVM tells its stack. */
    private static boolean forLatch(int number) {
        while (!stop) {
            try {
                latch.await();
            } catch (InterruptedException told) {
                return false;
            }
            if (number > 0 && TO_MOVE.getAndUpdate(n -> Math.max(n - 1, 0)) > 0) {
                THERE[0].decrementAndGet();
                THERE[1].incrementAndGet();
                return true;
            }
        }
        return false;
    }

    private static void asleep() {
        try {
            Thread.sleep(3_600_000);
        } catch (InterruptedException told) {
            // the end
        }
    }

    private static void forSocket(Socket socket) {
        try {
            socket.getInputStream().read();
        } catch (IOException closed) {
            // the end
        }
    }

    private static void forLock() {
        try {
            LOCK.lockInterruptibly();
            LOCK.unlock();
        } catch (InterruptedException told) {
            // the end
        }
    }

    private static void move(long seed) {
        long x = seed * 0x9E3779B97F4A7C15L;
        while (!stop) {
            x = burn(x) + new byte[1 << 14].length; // so that collectors move all there is
            int bits = (int) (x >>> 32) & 0xff;
            int path = bits << 4 | (bits + (bits >> 4)) & 0xf;
            step(path, 11);
        }
    }

    private static int step(int path, int level) {
        if (level < 0) {
            rest();
            return 0;
        }
        return (path >> level & 1) == 0 ? zero(path, level) + 1 : one(path, level) + 2;
    }

    private static int zero(int path, int level) {
        return step(path, level - 1) * 3;
    }

    private static int one(int path, int level) {
        return step(path, level - 1) * 5;
    }

    private static void rest() {
        LockSupport.parkNanos(1_000_000);
    }

    private static long burn(long from) {
        long x = from | 1;
        for (int i = 0; i < 2_000; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    private static Thread start(String name, Runnable task) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        builder = type.getMethod("name", String.class).invoke(builder, name);
        return (Thread) type.getMethod("start", Runnable.class).invoke(builder, task);
    }
}
