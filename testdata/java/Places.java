package truth;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * Proves: which inlined method is told to run, at places where one method does all the work.
 *
 * Each thread "place-N" works at one place for ever. There a method leafN does all but a hundredth of the work, mostly in
 * a loop of its own. Compilers inline it into its caller, or it into itself. So each sample of that thread should have
 * leafN on top. At place 1 a recursive method is there DEPTH + 1 times below it.
 *
 * The command "rounds" prints how often the slowest thread has done its work.
 */
public final class Places {
    static final int DEPTH = 30;
    private static final int SIZE = 512;

    private static final long[] rounds = new long[1 << 10]; // a line of the cache for each place
    /** What was worked out: a line for each place, too. CPUs that write one line wait for each other, which is work. */
    private static final long[] sinks = new long[1 << 10];

    private Places() {}

    /** What a thread does for ever. */
    private interface Work { long turn(int n); }

    public static void main(String[] args) {
        Work[] all = {Places::turn1, Places::turn2, Places::turn3, Places::turn4, Places::turn5, Places::turn6, Places::turn7,
            Places::turn8, Places::turn9, Places::turn10, Places::turn11, Places::turn12, Places::turn13, Places::turn14,
            Places::turn15, Places::turn16, Places::turn17, Places::turn18, Places::turn19, Places::turn20, Places::turn21,
            Places::turn22, Places::turn23, Places::turn24, Places::turn25, Places::turn26, Places::turn27};
        for (int i = 0; i < all.length; i++) {
            int place = i;
            Thread thread = new Thread(() -> work(all[place], 16 * place), "place-" + (place + 1));
            thread.setDaemon(true);
            thread.start();
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("rounds"), "no such command: " + command);
            long least = Long.MAX_VALUE;
            for (int place = 0; place < all.length; place++) {
                least = Math.min(least, rounds[16 * place]);
            }
            out.println(least);
        }, () -> {});
    }

    private static void work(Work work, int at) {
        for (int n = 0; ; n = (n + 1) & 0xff) {
            sinks[at] = work.turn(n);
            rounds[at]++;
        }
    }

    // 1: a loop inlined into a recursive method
    private static long turn1(int n) { return down(DEPTH, n); }

    private static int down(int depth, int n) { return depth == 0 ? leaf1(n) : down(depth - 1, n) + 1; }

    private static int leaf1(int n) {
        int x = n;
        for (int left = 20_000; left > 0; left -= 1 + (x & 1)) {
            x = x * 31 ^ left;
        }
        return x;
    }

    // 2: a method inlined into itself
    private static long turn2(int n) { return leaf2(16 + (n & 1)); }

    private static int leaf2(int n) { return n < 2 ? n : leaf2(n - 1) + leaf2(n - 2); }

    // 3: a small method in a loop
    private static long turn3(int n) {
        int x = n + 1;
        for (int i = 0; i < 2_000; i++) {
            x = leaf3(x, i);
        }
        return x;
    }

    private static int leaf3(int x, int i) {
        x ^= x << 13;
        x ^= x >>> 17;
        x ^= x << 5;
        x = x * 0x2545f491 + i;
        x ^= x >>> 11;
        return x * 31 - i;
    }

    // 4: the same through two wrappers
    private static long turn4(int n) {
        double x = n + 1;
        for (int i = 1; i < 2_000; i++) {
            x = outer4(x, i);
        }
        return (long) x;
    }

    private static double outer4(double x, int i) { return inner4(x, i); }

    private static double inner4(double x, int i) { return leaf4(x, i); }

    private static double leaf4(double x, int i) {
        x = x * 1.0625 + i;
        x -= x / 3.5;
        x = x * x / (x + 7.25);
        return x - i * 0.5;
    }

    // 5 and 6: streams
    private static long turn5(int n) { return IntStream.range(n, n + 8).map(Places::leaf5).sum(); }

    private static int leaf5(int n) {
        int x = n;
        for (int i = 0; i < 1_000; i++) {
            x = x * 17 + (x >>> 3) + i;
        }
        return x;
    }

    private static final List<int[]> ARRAYS = new ArrayList<>();

    static {
        for (int i = 0; i < 8; i++) {
            ARRAYS.add(new int[SIZE]);
        }
    }

    private static long turn6(int n) {
        return ARRAYS.stream().filter(a -> a.length > n).mapToLong(a -> leaf6(a, n)).sum();
    }

    private static long leaf6(int[] a, int n) {
        long x = n;
        for (int i = 1; i < a.length; i++) {
            x += a[i - 1] ^ x >> 2;
            a[i] = (int) x;
        }
        return x;
    }

    // 7 to 9: calls of an interface that have four, two and one method to go to
    private interface Shape { int area(int n); }

    private static final class Square implements Shape {
        @Override public int area(int n) { return leaf7(n); }

        private static int leaf7(int n) {
            int x = n;
            for (int i = 0; i < 1_000; i++) { x = x * x + i; }
            return x;
        }
    }

    private static final class Circle implements Shape {
        @Override public int area(int n) { return leaf7(n); }

        private static int leaf7(int n) {
            int x = n;
            for (int i = 0; i < 1_000; i++) { x = (x ^ i) * 7; }
            return x;
        }
    }

    private static final class Ring implements Shape {
        @Override public int area(int n) { return leaf7(n); }

        private static int leaf7(int n) {
            int x = n;
            for (int i = 0; i < 1_000; i++) { x = x - (x << 3) + i; }
            return x;
        }
    }

    private static final class Star implements Shape {
        @Override public int area(int n) { return leaf7(n); }

        private static int leaf7(int n) {
            int x = n;
            for (int i = 0; i < 1_000; i++) { x = x >>> 1 ^ i * 5; }
            return x;
        }
    }

    private static final Shape[] FOUR = {new Square(), new Circle(), new Ring(), new Star()};

    private static long turn7(int n) { return FOUR[n & 3].area(n); }

    private interface Field { int at(int n); }

    private static final class Hill implements Field {
        @Override public int at(int n) { return leaf8(n); }

        private static int leaf8(int n) {
            int x = n;
            for (int i = 0; i < 1_000; i++) { x = x * 3 + (i ^ x >> 4); }
            return x;
        }
    }

    private static final class Valley implements Field {
        @Override public int at(int n) { return leaf8(n); }

        private static int leaf8(int n) {
            int x = n;
            for (int i = 0; i < 1_000; i++) { x = x * 5 - (i & x >> 2); }
            return x;
        }
    }

    private static final Field[] TWO = {new Hill(), new Valley()};

    private static long turn8(int n) { return TWO[n & 1].at(n); }

    private abstract static class Counter {
        abstract int count(int n);
    }

    private static final class OnlyCounter extends Counter {
        private int sum;

        @Override int count(int n) { return leaf9(n); }

        private int leaf9(int n) {
            for (int i = 0; i < 1_000; i++) {
                sum += i ^ n;
                n = sum >>> 1;
            }
            return n;
        }
    }

    private static final Counter ONE = new OnlyCounter();

    private static long turn9(int n) { return ONE.count(n); }

    // 10 to 13: arrays
    private static final int[] NUMBERS = new int[SIZE];

    private static long turn10(int n) { return leaf10(NUMBERS, n); }

    private static long leaf10(int[] a, int n) {
        long sum = 0;
        for (int round = 0; round < 8; round++) {
            for (int i = 0; i < a.length; i++) {
                sum += a[i] * (long) (n + i);
            }
        }
        return sum;
    }

    private static final double[][] LEFT = new double[16][16], RIGHT = new double[16][16], PRODUCT = new double[16][16];

    private static long turn11(int n) {
        LEFT[n & 15][3] = n;
        RIGHT[3][n & 15] = n;
        return (long) leaf11(LEFT, RIGHT, PRODUCT);
    }

    private static double leaf11(double[][] a, double[][] b, double[][] c) {
        for (int i = 0; i < a.length; i++) {
            for (int j = 0; j < b.length; j++) {
                double sum = 0;
                for (int k = 0; k < b.length; k++) {
                    sum += a[i][k] * b[k][j];
                }
                c[i][j] = sum;
            }
        }
        return c[3][3];
    }

    private static final byte[] BYTES = new byte[SIZE];

    private static long turn12(int n) {
        BYTES[n & SIZE - 1] = (byte) n;
        return leaf12(BYTES);
    }

    private static int leaf12(byte[] text) {
        int hash = 0x811c9dc5;
        for (byte b : text) {
            hash = (hash ^ b & 0xff) * 0x01000193;
        }
        return hash;
    }

    private static final char[] CHARS = new char[SIZE];

    private static long turn13(int n) { return leaf13(CHARS, n); }

    private static int leaf13(char[] to, int n) {
        for (int i = 0; i < to.length; i++) {
            n = n * 1103515245 + 12345;
            to[i] = (char) ('a' + (n >>> 16) % 26);
        }
        return to[n & SIZE - 1];
    }

    // 14 and 15: divisions and roots
    private static long turn14(int n) { return leaf14(100_003 + n); }

    private static int leaf14(int n) {
        int divisors = 0;
        for (int i = 2; i < 400; i++) {
            if (n % i == 0) {
                divisors++;
            }
        }
        return divisors;
    }

    private static long turn15(int n) { return (long) leaf15(n); }

    private static double leaf15(int n) {
        double x = n + 2;
        for (int i = 1; i < 500; i++) {
            x = Math.sqrt(x + i);
        }
        return x;
    }

    // 16: a list; 17: a search; 18: a little machine; 19: bits
    private static final class Node {
        Node next;
        int value;
    }

    private static final Node LIST = list();

    private static Node list() {
        Node first = null;
        for (int i = 0; i < SIZE; i++) {
            Node node = new Node();
            node.next = first;
            node.value = i;
            first = node;
        }
        return first;
    }

    private static long turn16(int n) { return leaf16(LIST, n); }

    private static long leaf16(Node first, int n) {
        long sum = 0;
        for (int round = 0; round < 4; round++) {
            for (Node node = first; node != null; node = node.next) {
                node.value += n;
                sum += node.value;
            }
        }
        return sum;
    }

    private static final int[] SORTED = IntStream.range(0, SIZE).map(i -> 3 * i).toArray();

    private static long turn17(int n) { return leaf17(SORTED, n); }

    private static int leaf17(int[] a, int n) {
        int found = 0;
        for (int key = n; key < n + 200; key++) {
            int low = 0;
            int high = a.length - 1;
            while (low <= high) {
                int mid = low + high >>> 1;
                if (a[mid] < key) {
                    low = mid + 1;
                } else if (a[mid] > key) {
                    high = mid - 1;
                } else {
                    found++;
                    break;
                }
            }
        }
        return found;
    }

    private static final byte[] PROGRAM = {0, 1, 2, 3, 1, 4, 2, 5, 0, 3, 4, 1, 2, 0, 5, 6};

    private static long turn18(int n) { return leaf18(PROGRAM, n); }

    private static int leaf18(byte[] program, int x) {
        for (int at = 0; at < 1_500; at++) {
            switch (program[at & 15]) {
                case 0: x += at; break;
                case 1: x *= 3; break;
                case 2: x ^= x >>> 7; break;
                case 3: x -= 11; break;
                case 4: x = -x; break;
                case 5: x += x << 2; break;
                default: x = ~x; break;
            }
        }
        return x;
    }

    private static long turn19(int n) { return leaf19(n); }

    private static int leaf19(int n) {
        int bits = 0;
        for (int i = n; i < n + 60; i++) {
            for (int left = i * 0x9e3779b1; left != 0; left &= left - 1) {
                bits++;
            }
        }
        return bits;
    }

    // 20: static fields; 21: objects; 22: a lock; 23: a handler
    private static int first = 1, second = 2;

    private static long turn20(int n) { return leaf20(n); }

    private static int leaf20(int n) {
        for (int i = 0; i < 1_000; i++) {
            first += second ^ n;
            second = first * 5 + i;
        }
        return second;
    }

    private static volatile Node made;

    private static long turn21(int n) { return leaf21(n).value; }

    private static Node leaf21(int n) {
        Node last = null;
        for (int i = 0; i < 200; i++) {
            Node node = new Node();
            node.next = last;
            node.value = n + i;
            last = (i & 15) == 0 ? node : node.next == null ? node : last;
            for (int k = 0; k < 20; k++) {
                node.value = node.value * 13 ^ k;
            }
        }
        made = last;
        return last;
    }

    private static long turn22(int n) { return leaf22(n); }

    private static synchronized int leaf22(int n) {
        int x = n;
        for (int i = 0; i < 2_000; i++) {
            x = x * 29 + (x >>> 5 ^ i);
        }
        return x;
    }

    private static long turn23(int n) { return leaf23(NUMBERS, n); }

    private static int leaf23(int[] a, int n) {
        int x = n;
        try {
            for (int i = 0; i < 1_000; i++) {
                x = x * 7 + a[x & SIZE - 1] + i;
            }
        } catch (ArrayIndexOutOfBoundsException e) {
            return -1;
        }
        return x;
    }

    // 24 and 25: longs, sorting; 26: a small lambda; 27: loops in loops
    private static long turn24(int n) { return leaf24(n + 27); }

    private static int leaf24(long n) {
        int steps = 0;
        for (long from = n; from < n + 10; from++) {
            for (long x = from; x > 1; x = (x & 1) == 0 ? x >> 1 : 3 * x + 1) {
                steps++;
            }
        }
        return steps;
    }

    private static final int[] UNSORTED = new int[64];

    private static long turn25(int n) {
        for (int i = 0; i < UNSORTED.length; i++) {
            UNSORTED[i] = i * 31 + n & 0x7f;
        }
        return leaf25(UNSORTED);
    }

    private static int leaf25(int[] a) {
        for (int i = 1; i < a.length; i++) {
            int x = a[i];
            int at = i - 1;
            for (; at >= 0 && a[at] > x; at--) {
                a[at + 1] = a[at];
            }
            a[at + 1] = x;
        }
        return a[0];
    }

    private static final IntUnaryOperator STEP = Places::leaf26;

    private static long turn26(int n) {
        int x = n;
        for (int i = 0; i < 2_000; i++) {
            x = STEP.applyAsInt(x);
        }
        return x;
    }

    private static int leaf26(int x) {
        x = x * 0x41c64e6d + 0x3039;
        x ^= x >>> 15;
        x *= 0x2c1b3c6d;
        x ^= x >>> 12;
        x *= 0x297a2d39;
        return x ^ x >>> 15;
    }

    private static long turn27(int n) {
        int sum = 0;
        for (int i = 1; i < 20; i++) {
            sum += leaf27(1_000 + n, i);
        }
        return sum;
    }

    private static int leaf27(int a, int b) {
        while (a != b) {
            if (a > b) {
                a -= b;
            } else {
                b -= a;
            }
        }
        return a;
    }
}
