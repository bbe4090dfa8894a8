package truth;

import java.util.ArrayList;
import java.util.List;

/**
 * Sick: a cache without bound has taken the heap; what is left is just enough to go on, and the collector never rests.
 * Well: the cache has half of it.
 */
public final class FullHeap {
    static volatile Object sink;

    public static void main(String[] args) {
        boolean sick = Ward.sick(args);
        long bound = (long) (Runtime.getRuntime().maxMemory() * (sick ? 1 : 0.4));
        List<byte[]> cache = new ArrayList<>();
        long cached = 0;
        try {
            while (cached < bound) {
                cache.add(new byte[16 << 10]);
                cached += 16 << 10;
            }
        } catch (OutOfMemoryError full) {
            for (int i = cache.size() / 25; i > 0; i--) cache.remove(cache.size() - 1); // 4 % are left
        }
        Ward.forever("worker", () -> {
            try {
                for (int i = 0; i < 100; i++) sink = new byte[1 << 10];
            } catch (OutOfMemoryError full) {
                sink = null;
            }
            Thread.sleep(sick ? 1 : 5);
        });
        Ward.serve();
    }
}
