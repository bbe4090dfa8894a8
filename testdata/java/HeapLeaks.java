package truth;

import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.ref.SoftReference;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * Proves: a leak is named by who holds it, and what is no leak is not named.
 *
 * Each command begins something that goes on until the next "rest", beside what was begun before: "cache KB",
 * "listener KB", "local KB" and "loader KB" leak so many KB a second, "garbage MB" makes so many MB of garbage a second,
 * "healthy N" behaves in one of ten ways that grow for a while and end. "rest" ends all, and frees what leaked. "stop"
 * only ends all, and keeps what leaked. "keep MB" keeps so many MB at once: 6 of 10 orders in a map, 3 in an array, 1 in
 * a list.
 */
public final class HeapLeaks {
    private HeapLeaks() {}

    /** What is kept. */
    static final class Order {
        final byte[] load = new byte[1000];
    }

    public interface Listener {
        void changed();
    }

    /** A singleton to which listeners are added, and never removed. */
    static final class Registry {
        static final Registry ONLY = new Registry();
        final List<Listener> listeners = new ArrayList<>();
    }

    /** A class that each loader of plugins has for itself. */
    public static final class Plugin implements Listener {
        static final byte[] DATA = new byte[16 << 10];

        @Override
        public void changed() {
            DATA[0]++;
        }
    }

    static final class PluginLoader extends ClassLoader {
        PluginLoader() {
            super(HeapLeaks.class.getClassLoader());
        }

        Listener load() throws Exception {
            ByteArrayOutputStream code = new ByteArrayOutputStream();
            try (InputStream in = HeapLeaks.class.getResourceAsStream("HeapLeaks$Plugin.class")) {
                for (int b; (b = in.read()) >= 0; ) {
                    code.write(b);
                }
            }
            Class<?> c = defineClass("truth.HeapLeaks$Plugin", code.toByteArray(), 0, code.size());
            return (Listener) c.getDeclaredConstructor().newInstance();
        }
    }

    static final Map<Integer, Order> CACHE = new ConcurrentHashMap<>();
    static final List<Listener> DRIVERS = new ArrayList<>();
    static final ThreadLocal<List<Order>> SESSIONS = ThreadLocal.withInitial(ArrayList::new);
    static final Map<Integer, Order> LRU = new LinkedHashMap<Integer, Order>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, Order> eldest) {
            return size() > 4000;
        }
    };
    static final ArrayDeque<Order> QUEUE = new ArrayDeque<>();
    static final List<Order> BATCH = new ArrayList<>();
    static final ArrayList<Order> KEPT = new ArrayList<>();
    static final LinkedList<Order> CHAIN = new LinkedList<>();
    static Map<Integer, Order> snapshot = new HashMap<>();
    static SoftReference<byte[][]> soft = new SoftReference<>(null);
    static final Map<String, Long> rates = new ConcurrentHashMap<>();
    static volatile Object garbage;
    /** What waits until the worker has ended a round: "rest", "stop" or nothing. */
    static volatile String waiting;
    static int number;

    /** Does once what is to be done so many times a second: 1 KB of a leak each. */
    private static void once(String what) throws Exception {
        int n = number++;
        switch (what) {
            case "cache": CACHE.put(n, new Order()); break;
            case "listener": {
                Order order = new Order();
                Registry.ONLY.listeners.add(() -> order.load[0]++);
                break;
            }
            case "local": SESSIONS.get().add(new Order()); break;
            case "loader": if (n % 16 == 0) {
                Listener plugin = new PluginLoader().load();
                plugin.changed();
                DRIVERS.add(plugin);
            }
                break;
            case "garbage": garbage = new Object[] {new byte[400], new long[50], "x" + n}; break;
            default: throw new IllegalArgumentException(what);
        }
    }

    /** What healthy programs do, at some hundred KB to some MB a second. */
    private static void healthy(int way) throws Exception {
        int n = number++;
        switch (way) {
            case 0: garbage = new Order(); break; // garbage alone
            case 1: LRU.put(n, new Order()); break; // a cache that is full
            case 2: QUEUE.add(new Order()); if (QUEUE.size() > 2000) QUEUE.poll(); break; // a queue that is served
            case 3: BATCH.add(new Order()); if (BATCH.size() == 1500) BATCH.clear(); break; // a batch
            case 4: if (n % 500 == 0) { // a copy that replaces the one before
                Map<Integer, Order> next = new HashMap<>();
                for (int i = 0; i < 2000; i++) next.put(i, new Order());
                snapshot = next;
            }
                break;
            case 5: if (n % 500 == 0) soft = new SoftReference<>(new byte[200][4000]); break; // softly referenced
            case 6: SESSIONS.get().add(new Order()); if (n % 1000 == 0) SESSIONS.remove(); break; // a local that is removed
            case 7: if (n % 64 == 0) new PluginLoader().load().changed(); break; // classes come and go
            case 8: CACHE.put(n % 3000, new Order()); break; // entries that are replaced
            default: ("id-" + n % 5000).intern(); garbage = "id-" + n; break; // the same names again and again
        }
    }

    private static void keep(int orders) {
        KEPT.ensureCapacity(3 * orders / 10);
        for (int i = 0; i < orders; i++) {
            if (i % 10 < 6) {
                CACHE.put(3000 + i, new Order());
            } else if (i % 10 < 9) {
                KEPT.add(new Order());
            } else {
                CHAIN.add(new Order());
            }
        }
    }

    private static void work() {
        for (long last = System.nanoTime(); ; ) {
            LockSupport.parkNanos(10_000_000);
            long now = System.nanoTime();
            double passed = Math.min(1, (now - last) / 1e9);
            last = now;
            try {
                for (Map.Entry<String, Long> e : rates.entrySet()) {
                    for (double left = e.getValue() * passed; left > 0; left--) {
                        if (e.getKey().startsWith("healthy ")) {
                            healthy(Integer.parseInt(e.getKey().substring(8)));
                        } else {
                            once(e.getKey());
                        }
                    }
                }
            } catch (Throwable e) {
                e.printStackTrace();
                Runtime.getRuntime().halt(3);
            }
            String command = waiting;
            if ("rest".equals(command)) {
                CACHE.clear();
                Registry.ONLY.listeners.clear();
                DRIVERS.clear();
                SESSIONS.remove();
            }
            if (command != null) {
                waiting = null;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Thread worker = new Thread(HeapLeaks::work, "worker-1");
        worker.setDaemon(true);
        worker.start();
        for (int i = 0; i < 5000; i++) {
            LRU.put(-i, new Order());
            CACHE.put(i % 3000, new Order());
            ("id-" + i).intern();
            QUEUE.add(new Order());
        }
        while (QUEUE.size() > 2000) {
            QUEUE.poll();
        }
        System.gc();
        Control.serve((command, out) -> {
            String[] words = command.split(" ");
            switch (words[0]) {
                case "rest": case "stop":
                    rates.clear();
                    waiting = words[0];
                    while (waiting != null) { // a worker that is late makes up to 1,000 objects more of each kind
                        Thread.sleep(5);
                    }
                    if (words[0].equals("rest")) {
                        System.gc();
                    }
                    break;
                case "gc": System.gc(); break;
                case "keep": keep(1000 * Integer.parseInt(words[1])); break;
                case "healthy": rates.put(command, 1000L); break;
                case "garbage": rates.put("garbage", 1000 * Long.parseLong(words[1])); break;
                default: rates.put(words[0], Long.parseLong(words[1]));
            }
        }, () -> { });
    }
}
