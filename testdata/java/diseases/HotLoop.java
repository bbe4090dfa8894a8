package truth;

/**
 * Sick: a thread looks for a key in a table that has become a ring, and never comes out of the loop.
 * Well: it finds its key, some thousand times a second, and rests between.
 */
public final class HotLoop {
    static final class Entry {
        final int key;
        Entry next;

        Entry(int key, Entry next) {
            this.key = key;
            this.next = next;
        }
    }

    static volatile int found;

    static Entry lookUp(Entry first, int key) {
        Entry e = first;
        while (e != null && e.key != key) e = e.next;
        return e;
    }

    public static void main(String[] args) {
        boolean sick = Ward.sick(args);
        Entry first = new Entry(0, null), last = first;
        for (int i = 1; i < 100; i++) {
            last.next = new Entry(i, null);
            last = last.next;
        }
        if (sick) last.next = first;
        Ward.forever("table-user", () -> {
            Entry e = lookUp(first, sick ? -1 : 99);
            found = e == null ? -1 : e.key;
            Thread.sleep(1);
        });
        Ward.serve();
    }
}
