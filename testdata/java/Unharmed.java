package truth;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.Pipe;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.CRC32;

/**
 * Proves: whatever becomes of who looks at it, a program works on and sees nothing of it. Its threads do what depends on
 * signals (implicit null checks), on system calls that a stop could interrupt (selectors, pipes, sleeps, locks) and on the
 * collector, and each checks its own results. Argument: a file, in which each thread counts what it has done, as a
 * native long at 64 times its number; the first long is how many there are.
 *
 * An error that any thread sees is the answer to "check", and the end is not taken for right.
 */
public final class Unharmed {
    private interface Work {
        void once(long round) throws Exception;
    }

    private static final class Link {
        Link next;
        long value;
    }

    private static final AtomicReference<String> WRONG = new AtomicReference<>();
    private static MappedByteBuffer counts;
    private static int threads;
    static volatile Object sink;

    private Unharmed() {}

    public static void main(String[] args) throws Exception {
        try (RandomAccessFile file = new RandomAccessFile(args[0], "rw")) {
            counts = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 4096);
            counts.order(java.nio.ByteOrder.nativeOrder());
        }
        start("nulls-0", Unharmed::nulls);
        start("nulls-1", Unharmed::nulls);
        start("sums", Unharmed::sums);
        start("garbage", round -> sink = new byte[1 + (int) (round % 5000)]);
        start("sleeps", Unharmed::sleeps);
        Pipe there = Pipe.open(), back = Pipe.open();
        Selector selector = Selector.open();
        there.source().configureBlocking(false);
        there.source().register(selector, SelectionKey.OP_READ);
        start("selects", round -> selects(selector, there.source(), back.sink(), round));
        start("pipes", round -> pipes(there.sink(), back.source(), round));
        SynchronousQueue<Long> handed = new SynchronousQueue<>();
        start("gives", handed::put);
        start("takes", round -> Control.check(handed.take() == round, "another one was handed over"));
        counts.putLong(0, threads);
        Control.serve((command, out) -> Control.check(WRONG.get() == null, WRONG.get()),
                () -> Control.check(WRONG.get() == null, WRONG.get()));
    }

    /** One in ten links leads to nothing: the compiled code finds out by a signal. */
    private static void nulls(long round) {
        Link full = new Link();
        full.next = new Link();
        full.next.value = 1;
        Link empty = new Link();
        int caught = 0, sum = 0;
        for (int i = 0; i < 100; i++) {
            try {
                sum += follow(i % 10 == 0 ? empty : full);
            } catch (NullPointerException expected) {
                caught++;
            }
        }
        Control.check(caught == 10 && sum == 90, caught + " null checks of 10, " + sum + " links of 90");
    }

    private static long follow(Link link) {
        return link.next.value;
    }

    private static void sums(long round) {
        CRC32 crc = new CRC32();
        for (int i = 0; i < 1000; i++) {
            crc.update(i);
        }
        if (round == 0) {
            firstSum = crc.getValue();
        }
        Control.check(crc.getValue() == firstSum, "another sum");
    }

    private static long firstSum;

    private static void sleeps(long round) throws Exception {
        long began = System.nanoTime();
        Thread.sleep(1);
        Control.check(System.nanoTime() - began >= 900_000, "a sleep was too short");
        LockSupport.parkNanos(100_000);
        Control.check(!Thread.interrupted(), "interrupted");
    }

    private static void selects(Selector selector, Pipe.SourceChannel in, Pipe.SinkChannel out, long round) throws IOException {
        ByteBuffer got = ByteBuffer.allocate(8);
        while (got.hasRemaining()) {
            selector.select();
            selector.selectedKeys().clear();
            Control.check(in.read(got) >= 0, "the pipe has ended");
        }
        got.flip();
        Control.check(got.getLong(0) == round, "another number");
        while (got.hasRemaining()) {
            out.write(got);
        }
    }

    private static void pipes(Pipe.SinkChannel out, Pipe.SourceChannel in, long round) throws IOException {
        ByteBuffer number = ByteBuffer.allocate(8);
        number.putLong(0, round);
        while (number.hasRemaining()) {
            out.write(number);
        }
        number.clear();
        while (number.hasRemaining()) {
            Control.check(in.read(number) > 0, "the pipe has ended");
        }
        Control.check(number.getLong(0) == round, "another number came back");
    }

    private static void start(String name, Work work) {
        int slot = 64 * ++threads;
        Thread thread = new Thread(() -> {
            try {
                for (long round = 0; ; round++) {
                    work.once(round);
                    counts.putLong(slot, round + 1);
                }
            } catch (Throwable wrong) {
                WRONG.compareAndSet(null, name + ": " + wrong);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }
}
