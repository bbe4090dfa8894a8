package truth;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.StringTokenizer;

/**
 * Proves: which inlined method runs, on code as programs have it of their own: loops with arithmetic and small methods.
 * With it, rules for the leaf are made. Its kinds stand for those of Programs that are held back.
 *
 * Its rounds are of the named kind. Argument: the kind.
 */
public final class Everyday {
    private Everyday() {}

    public static void main(String[] args) throws Exception {
        boolean text = args[0].equals("text");
        Control.check(text || args[0].equals("compute"), args[0]);
        Rounds.serve(text ? Everyday::text : Everyday::compute);
    }

    private static long compute() {
        Random random = new Random(7);
        byte[] bytes = new byte[6_000];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (i % 11 == 0 ? random.nextInt() : 'a' + i % 7);
        }
        long sum = distance(Arrays.copyOf(bytes, 200), Arrays.copyOfRange(bytes, 150, 380));
        sum = sum * 31 + pack(bytes).length();
        sum = sum * 31 + primes(20_000);
        sum = sum * 31 + Double.doubleToLongBits(new Matrix(24, random).times(new Matrix(24, random)).trace());
        sum = sum * 31 + queens(6, 0, 0, 0, 0);
        for (int i = 1; i < 400; i++) {
            sum += collatz(i) ^ power(i, 65_537, 1_000_000_007L);
        }
        Heap heap = new Heap(1_000);
        for (int i = 0; i < 900; i++) {
            heap.add(random.nextInt(10_000));
        }
        while (heap.size > 0) {
            sum = sum * 17 + heap.poll();
        }
        return sum * 31 + new Life(48, random).run(6);
    }

    private static int distance(byte[] a, byte[] b) {
        int[][] cost = new int[a.length + 1][b.length + 1];
        for (int i = 0; i <= a.length; i++) {
            for (int j = 0; j <= b.length; j++) {
                cost[i][j] = i == 0 ? j : j == 0 ? i : least(cost, i, j, same(a[i - 1], b[j - 1]) ? 0 : 1);
            }
        }
        return cost[a.length][b.length];
    }

    private static boolean same(byte a, byte b) { return (a & 0xdf) == (b & 0xdf); }

    private static int least(int[][] cost, int i, int j, int change) {
        return Math.min(cost[i - 1][j - 1] + change, Math.min(cost[i - 1][j], cost[i][j - 1]) + 1);
    }

    /** A packer that looks for what was there before, by a table of hashes. */
    private static StringBuilder pack(byte[] in) {
        int[] seen = new int[1 << 10];
        Arrays.fill(seen, -1);
        StringBuilder out = new StringBuilder();
        for (int at = 0; at + 4 < in.length; ) {
            int hash = hash(word(in, at));
            int from = seen[hash], length = from < 0 ? 0 : match(in, from, at);
            seen[hash] = at;
            if (length > 3) {
                out.append('<').append(at - from).append(',').append(length).append('>');
                at += length;
            } else {
                out.append((char) (in[at++] & 0xff));
            }
        }
        return out;
    }

    private static int word(byte[] in, int at) {
        return in[at] & 0xff | (in[at + 1] & 0xff) << 8 | (in[at + 2] & 0xff) << 16 | in[at + 3] << 24;
    }

    private static int hash(int word) { return word * 0x9e3779b1 >>> 22; }

    private static int match(byte[] in, int from, int at) {
        int n = 0;
        while (at + n < in.length && n < 255 && in[from + n] == in[at + n]) {
            n++;
        }
        return n;
    }

    private static int primes(int most) {
        BitSet composite = new BitSet(most);
        int n = 0;
        for (int i = 2; i < most; i++) {
            if (!composite.get(i)) {
                n++;
                for (long k = (long) i * i; k < most; k += i) {
                    composite.set((int) k);
                }
            }
        }
        return n;
    }

    private static int queens(int n, int row, int down, int left, int right) {
        if (row == n) {
            return 1;
        }
        int found = 0;
        for (int column = 0; column < n; column++) {
            int d = bit(column), l = bit(column + row), r = bit(column - row + n);
            if ((down & d | left & l | right & r) == 0) {
                found += queens(n, row + 1, down | d, left | l, right | r);
            }
        }
        return found;
    }

    private static int bit(int n) { return 1 << n; }

    private static int collatz(long n) {
        int steps = 0;
        while (n != 1) {
            n = even(n) ? n >> 1 : 3 * n + 1;
            steps++;
        }
        return steps;
    }

    private static boolean even(long n) { return (n & 1) == 0; }

    private static long power(long base, int exponent, long modulus) {
        long result = 1;
        for (; exponent > 0; exponent >>= 1) {
            if ((exponent & 1) != 0) {
                result = times(result, base, modulus);
            }
            base = times(base, base, modulus);
        }
        return result;
    }

    private static long times(long a, long b, long modulus) { return a * b % modulus; }

    private static final class Matrix {
        private final double[] cells;
        private final int n;

        Matrix(int n, Random random) {
            this.n = n;
            cells = new double[n * n];
            for (int i = 0; random != null && i < cells.length; i++) {
                cells[i] = random.nextDouble();
            }
        }

        double at(int row, int column) { return cells[row * n + column]; }

        void put(int row, int column, double value) { cells[row * n + column] = value; }

        Matrix times(Matrix other) {
            Matrix product = new Matrix(n, null);
            for (int i = 0; i < n; i++) {
                for (int k = 0; k < n; k++) {
                    double sum = 0;
                    for (int j = 0; j < n; j++) {
                        sum += at(i, j) * other.at(j, k);
                    }
                    product.put(i, k, sum);
                }
            }
            return product;
        }

        double trace() {
            double sum = 0;
            for (int i = 0; i < n; i++) {
                sum += at(i, i);
            }
            return sum;
        }
    }

    private static final class Heap {
        private final int[] items;
        private int size;

        Heap(int most) { items = new int[most]; }

        void add(int item) {
            items[size] = item;
            for (int at = size++; at > 0 && less(at, parent(at)); at = parent(at)) {
                swap(at, parent(at));
            }
        }

        int poll() {
            int first = items[0];
            items[0] = items[--size];
            for (int at = 0, child; (child = smaller(at)) > 0 && less(child, at); at = child) {
                swap(child, at);
            }
            return first;
        }

        private int smaller(int at) {
            int child = 2 * at + 1;
            if (child >= size) {
                return -1;
            }
            return child + 1 < size && less(child + 1, child) ? child + 1 : child;
        }

        private static int parent(int at) { return (at - 1) / 2; }

        private boolean less(int a, int b) { return items[a] < items[b]; }

        private void swap(int a, int b) {
            int item = items[a];
            items[a] = items[b];
            items[b] = item;
        }
    }

    private static final class Life {
        private boolean[] cells;
        private final int n;

        Life(int n, Random random) {
            this.n = n;
            cells = new boolean[n * n];
            for (int i = 0; i < cells.length; i++) {
                cells[i] = random.nextBoolean();
            }
        }

        private int index(int x, int y) { return (x + n) % n * n + (y + n) % n; }

        private int neighbours(int x, int y) {
            int n = 0;
            for (int dx = -1; dx <= 1; dx++) {
                for (int dy = -1; dy <= 1; dy++) {
                    if ((dx != 0 || dy != 0) && cells[index(x + dx, y + dy)]) {
                        n++;
                    }
                }
            }
            return n;
        }

        int run(int rounds) {
            int alive = 0;
            for (int r = 0; r < rounds; r++) {
                boolean[] next = new boolean[cells.length];
                for (int x = 0; x < n; x++) {
                    for (int y = 0; y < n; y++) {
                        int around = neighbours(x, y);
                        next[index(x, y)] = around == 3 || around == 2 && cells[index(x, y)];
                    }
                }
                cells = next;
            }
            for (boolean cell : cells) {
                alive += cell ? 1 : 0;
            }
            return alive;
        }
    }

    private static long text() {
        Random random = new Random(8);
        StringBuilder table = new StringBuilder();
        for (int i = 0; i < 300; i++) {
            table.append(i).append(';').append(random.nextInt(100_000)).append(';').append(quoted("name " + i % 40)).append(';')
                .append(random.nextBoolean()).append(';').append(random.nextLong()).append('\n');
        }
        String all = table.toString();
        long sum = all.length();
        Map<String, Long> sums = new HashMap<>();
        for (int begin = 0, end; (end = all.indexOf('\n', begin)) >= 0; begin = end + 1) {
            List<String> row = split(all.substring(begin, end), ';');
            sums.merge(row.get(2), (long) Integer.parseInt(row.get(1)), Long::sum);
            sum += Long.parseLong(row.get(4)) ^ hex(row.get(4));
        }
        for (Map.Entry<String, Long> e : sums.entrySet()) {
            sum += e.getKey().hashCode() * e.getValue();
        }
        for (StringTokenizer words = new StringTokenizer(all, " ;\n\""); words.hasMoreTokens(); ) {
            String word = words.nextToken();
            sum = sum * 31 + (isNumber(word) ? word.length() : word.toLowerCase().trim().hashCode());
        }
        return sum * 31 + new Json(json(40)).value() + escaped(all).length() + new String(utf(all), StandardCharsets.UTF_8).length();
    }

    private static String quoted(String s) {
        StringBuilder out = new StringBuilder(s.length() + 2).append('"');
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\');
            }
            out.append(c);
        }
        return out.append('"').toString();
    }

    private static List<String> split(String line, char by) {
        List<String> parts = new ArrayList<>();
        int begin = 0;
        for (int i = 0; i < line.length(); i++) {
            if (line.charAt(i) == by) {
                parts.add(line.substring(begin, i));
                begin = i + 1;
            }
        }
        parts.add(line.substring(begin));
        return parts;
    }

    private static long hex(String s) {
        long value = 0;
        for (int i = 0; i < s.length(); i++) {
            value = value << 4 | Math.max(Character.digit(s.charAt(i), 16), 0);
        }
        return value;
    }

    private static boolean isNumber(String s) {
        for (int i = 0; i < s.length(); i++) {
            if (!Character.isDigit(s.charAt(i)) && !(i == 0 && s.charAt(i) == '-')) {
                return false;
            }
        }
        return !s.isEmpty();
    }

    private static String escaped(String s) {
        StringBuilder out = new StringBuilder();
        for (char c : s.toCharArray()) {
            switch (c) {
                case '<': out.append("&lt;"); break;
                case '"': out.append("&quot;"); break;
                case '\n': out.append("<br>"); break;
                default: out.append(c);
            }
        }
        return out.toString();
    }

    private static byte[] utf(String s) {
        byte[] out = new byte[3 * s.length()];
        int n = 0;
        for (int i = 0; i < s.length(); i++) {
            int c = s.charAt(i) == ';' ? 0xe4 : s.charAt(i);
            if (c < 0x80) {
                out[n++] = (byte) c;
            } else {
                out[n++] = (byte) (0xc0 | c >> 6);
                out[n++] = (byte) (0x80 | c & 0x3f);
            }
        }
        return Arrays.copyOf(out, n);
    }

    private static String json(int n) {
        StringBuilder out = new StringBuilder("[");
        for (int i = 0; i < n; i++) {
            out.append(i > 0 ? ", " : "").append("{\"id\": ").append(i * 7_919).append(", \"tags\": [\"a").append(i).append("\", true, null]}");
        }
        return out.append(']').toString();
    }

    /** A reader of JSON that sums up what it reads. */
    private static final class Json {
        private final String text;
        private int at;

        Json(String text) { this.text = text; }

        private char peek() {
            while (text.charAt(at) <= ' ') {
                at++;
            }
            return text.charAt(at);
        }

        private char next() {
            char c = peek();
            at++;
            return c;
        }

        long value() {
            switch (peek()) {
                case '{': case '[': return list();
                case '"': return string().hashCode();
                case 't': case 'f': case 'n': return word();
                default: return number();
            }
        }

        private long list() {
            char open = next();
            long sum = open;
            while (peek() != ']' && peek() != '}') {
                sum = sum * 31 + value();
                if (peek() == ':' || peek() == ',') {
                    next();
                }
            }
            next();
            return sum;
        }

        private String string() {
            StringBuilder out = new StringBuilder();
            next();
            for (char c; (c = text.charAt(at++)) != '"'; ) {
                out.append(c);
            }
            return out.toString();
        }

        private long word() {
            long sum = 0;
            while (Character.isLetter(text.charAt(at))) {
                sum = sum * 31 + text.charAt(at++);
            }
            return sum;
        }

        private long number() {
            long sum = 0;
            for (char c; (c = text.charAt(at)) >= '0' && c <= '9'; at++) {
                sum = sum * 10 + c - '0';
            }
            return sum;
        }
    }
}
