package truth;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Proves: a reader that stands behind a writer is in a deadlock only if that writer never gives up. The thread "holder"
 * reads and wants a monitor of the thread "reader", which wants to read, too, and stands behind the thread "writer".
 * Argument: "timed" for a writer that gives up in time, "endless" for one that never does.
 */
public final class TimedWriter {
    private TimedWriter() {}

    private static final ReentrantReadWriteLock LOCK = new ReentrantReadWriteLock();
    private static final Object MONITOR = new Object();

    public static void main(String[] args) throws Exception {
        boolean timed = args[0].equals("timed");
        Thread reader = new Thread(TimedWriter::read, "reader");
        Thread writer = new Thread(() -> write(timed), "writer");
        Thread holder = new Thread(() -> hold(writer, reader), "holder");
        for (Thread thread : new Thread[] {reader, writer, holder}) {
            thread.setDaemon(true);
        }
        holder.start();
        await(holder, Thread.State.BLOCKED);
        Control.serve((command, out) -> {}, () -> Control.check(holder.isAlive(), "the holder has ended"));
    }

    private static void hold(Thread writer, Thread reader) {
        LOCK.readLock().lock();
        writer.start();
        while (!LOCK.hasQueuedThread(writer)) {
            Thread.yield();
        }
        reader.start();
        while (!LOCK.hasQueuedThread(reader)) {
            Thread.yield();
        }
        synchronized (MONITOR) {
            throw new IllegalStateException("the reader holds the monitor");
        }
    }

    private static void read() {
        synchronized (MONITOR) {
            LOCK.readLock().lock();
        }
    }

    private static void write(boolean timed) {
        try {
            if (timed) {
                LOCK.writeLock().tryLock(1, TimeUnit.HOURS);
            } else {
                LOCK.writeLock().lock();
            }
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    private static void await(Thread thread, Thread.State state) throws InterruptedException {
        while (thread.getState() != state) {
            Thread.sleep(1);
        }
    }
}
