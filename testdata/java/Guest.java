package truth;

import java.util.zip.CRC32;

/**
 * One of many JVMs of a host: it works for some milliseconds, and rests for some.
 *
 * Arguments: milliseconds of work (20), of rest (1000).
 */
public final class Guest {
    private static volatile long result;

    public static void main(String[] args) {
        long work = Long.parseLong(args.length > 0 ? args[0] : "20") * 1_000_000;
        long rest = Long.parseLong(args.length > 1 ? args[1] : "1000");
        Thread worker = new Thread(() -> work(work, rest), "worker");
        worker.setDaemon(true);
        worker.start();
        Control.serve((command, out) -> { }, () -> { });
    }

    private static void work(long time, long rest) {
        CRC32 crc = new CRC32();
        byte[] data = new byte[4096];
        try {
            while (true) {
                for (long begin = System.nanoTime(); System.nanoTime() - begin < time; ) {
                    crc.update(data, 0, data.length);
                }
                result = crc.getValue();
                Thread.sleep(rest);
            }
        } catch (InterruptedException ended) {
            return;
        }
    }
}
