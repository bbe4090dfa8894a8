package truth;

import java.util.zip.CRC32;

/**
 * One of many JVMs of a host: it works for some milliseconds of each second.
 *
 * Arguments: milliseconds (20).
 */
public final class Guest {
    private static volatile long result;

    public static void main(String[] args) {
        long work = Long.parseLong(args.length > 0 ? args[0] : "20") * 1_000_000;
        Thread worker = new Thread(() -> work(work), "worker");
        worker.setDaemon(true);
        worker.start();
        Control.serve((command, out) -> { }, () -> { });
    }

    private static void work(long time) {
        CRC32 crc = new CRC32();
        byte[] data = new byte[4096];
        try {
            while (true) {
                for (long begin = System.nanoTime(); System.nanoTime() - begin < time; ) {
                    crc.update(data, 0, data.length);
                }
                result = crc.getValue();
                Thread.sleep(1000);
            }
        } catch (InterruptedException ended) {
            return;
        }
    }
}
