package truth;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.TreeMap;

/**
 * Proves: which inlined method runs, on code as services have it of their own: parsers, sorts, trees, codecs, searches
 * in graphs, an index of words, a market, a layout. Some of its kinds are held back: no rule is made with them
 * (testdata/oracle/leaf_test.go says with which).
 *
 * Its rounds are of the named kind. Argument: the kind.
 */
public final class Services {
    private Services() {}

    public static void main(String[] args) throws Exception {
        Rounds.serve(kindOf(args[0]));
    }

    private static Rounds.Round kindOf(String name) {
        switch (name) {
            case "json": return Services::json;
            case "sorting": return Services::sorting;
            case "trees": return Services::trees;
            case "codecs": return Services::codecs;
            case "graphs": return Services::graphs;
            case "words": return Services::words;
            case "market": return Services::market;
            case "layout": return Services::layout;
            default: throw new IllegalArgumentException(name);
        }
    }

    // --- json: a document is written, parsed, and changed.

    private static long json() {
        Random random = new Random(11);
        StringBuilder out = new StringBuilder();
        long sum = 0;
        for (int i = 0; i < 20; i++) {
            out.setLength(0);
            new JsonWriter(out).write(order(random, i));
            Object parsed = new JsonReader(out.toString()).document();
            sum = sum * 31 + weigh(parsed, 0) + out.length();
        }
        return sum;
    }

    private static Map<String, Object> order(Random random, int number) {
        Map<String, Object> order = new LinkedHashMap<>();
        order.put("number", (double) number);
        order.put("customer", "M\u00fcller \"" + random.nextInt(100) + "\"\n");
        List<Object> lines = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("article", "a" + random.nextInt(1000));
            line.put("price", random.nextInt(10_000) / 4.0);
            line.put("gift", random.nextBoolean());
            line.put("note", i % 3 == 0 ? null : "x");
            lines.add(line);
        }
        order.put("lines", lines);
        return order;
    }

    private static long weigh(Object value, int depth) {
        if (value instanceof Map) {
            long sum = depth;
            for (Map.Entry<?, ?> e : ((Map<?, ?>) value).entrySet()) {
                sum += e.getKey().hashCode() + 3 * weigh(e.getValue(), depth + 1);
            }
            return sum;
        }
        if (value instanceof List) {
            long sum = 1;
            for (Object item : (List<?>) value) {
                sum = sum * 7 + weigh(item, depth + 1);
            }
            return sum;
        }
        return value == null ? 5 : value.hashCode();
    }

    static final class JsonWriter {
        private final StringBuilder out;

        JsonWriter(StringBuilder out) {
            this.out = out;
        }

        void write(Object value) {
            if (value instanceof Map) {
                char before = '{';
                for (Map.Entry<?, ?> e : ((Map<?, ?>) value).entrySet()) {
                    out.append(before);
                    string((String) e.getKey());
                    out.append(':');
                    write(e.getValue());
                    before = ',';
                }
                out.append('}');
            } else if (value instanceof List) {
                char before = '[';
                for (Object item : (List<?>) value) {
                    out.append(before);
                    write(item);
                    before = ',';
                }
                out.append(']');
            } else if (value instanceof String) {
                string((String) value);
            } else {
                out.append(value);
            }
        }

        private void string(String text) {
            out.append('"');
            for (int i = 0; i < text.length(); i++) {
                char c = text.charAt(i);
                if (c == '"' || c == '\\') {
                    out.append('\\').append(c);
                } else if (c < ' ') {
                    out.append("\\u00").append(digit(c >> 4)).append(digit(c & 15));
                } else {
                    out.append(c);
                }
            }
            out.append('"');
        }

        private static char digit(int n) {
            return (char) (n < 10 ? '0' + n : 'a' + n - 10);
        }
    }

    static final class JsonReader {
        private final String text;
        private int at;

        JsonReader(String text) {
            this.text = text;
        }

        Object document() {
            Object value = value();
            skip();
            Control.check(at == text.length(), "text behind the document at " + at);
            return value;
        }

        private Object value() {
            skip();
            switch (peek()) {
                case '{': return object();
                case '[': return array();
                case '"': return string();
                case 't': return word("true", true);
                case 'f': return word("false", false);
                case 'n': return word("null", null);
                default: return number();
            }
        }

        private Map<String, Object> object() {
            Map<String, Object> map = new HashMap<>();
            expect('{');
            do {
                skip();
                String key = string();
                skip();
                expect(':');
                map.put(key, value());
                skip();
            } while (accept(','));
            expect('}');
            return map;
        }

        private List<Object> array() {
            List<Object> list = new ArrayList<>();
            expect('[');
            do {
                list.add(value());
                skip();
            } while (accept(','));
            expect(']');
            return list;
        }

        private String string() {
            expect('"');
            StringBuilder out = new StringBuilder();
            for (char c = next(); c != '"'; c = next()) {
                if (c == '\\') {
                    c = next();
                    if (c == 'u') {
                        c = (char) Integer.parseInt(text.substring(at, at + 4), 16);
                        at += 4;
                    }
                }
                out.append(c);
            }
            return out.toString();
        }

        private Double number() {
            boolean negative = accept('-');
            long whole = 0;
            while (isDigit(peek())) {
                whole = whole * 10 + next() - '0';
            }
            double value = whole;
            if (accept('.')) {
                for (double scale = 0.1; isDigit(peek()); scale /= 10) {
                    value += (next() - '0') * scale;
                }
            }
            return negative ? -value : value;
        }

        private Object word(String word, Object value) {
            for (int i = 0; i < word.length(); i++) {
                expect(word.charAt(i));
            }
            return value;
        }

        private void skip() {
            while (at < text.length() && text.charAt(at) <= ' ') {
                at++;
            }
        }

        private char peek() {
            return at < text.length() ? text.charAt(at) : 0;
        }

        private char next() {
            return text.charAt(at++);
        }

        private boolean accept(char c) {
            if (peek() != c) {
                return false;
            }
            at++;
            return true;
        }

        private void expect(char c) {
            Control.check(accept(c), "no " + c + " at " + at);
        }

        private static boolean isDigit(char c) {
            return c >= '0' && c <= '9';
        }
    }

    // --- sorting: records by several keys, and numbers in several ways.

    static final class Person {
        final String name;
        final int age;
        final double income;

        Person(Random random) {
            name = Integer.toString(random.nextInt(50_000), 36);
            age = 18 + random.nextInt(60);
            income = random.nextInt(1_000) * 100.0;
        }

        int age() {
            return age;
        }

        String name() {
            return name;
        }
    }

    private static long sorting() {
        Random random = new Random(3);
        List<Person> people = new ArrayList<>();
        for (int i = 0; i < 800; i++) {
            people.add(new Person(random));
        }
        Collections.sort(people, Comparator.comparingInt(Person::age).thenComparing(Person::name));
        long sum = people.get(17).name.hashCode();
        people.sort((a, b) -> Double.compare(b.income, a.income));
        sum = sum * 31 + people.get(400).name.hashCode();
        int[] numbers = random.ints(2_000, 0, 10_000).toArray();
        int[] quick = numbers.clone();
        quickSort(quick, 0, quick.length - 1);
        int[] merged = numbers.clone();
        mergeSort(merged, new int[merged.length], 0, merged.length);
        int[] shells = numbers.clone();
        shellSort(shells);
        for (int i = 0; i < quick.length; i++) {
            Control.check(quick[i] == merged[i] && merged[i] == shells[i], "sorted otherwise at " + i);
            sum = sum * 3 + quick[i];
        }
        return sum;
    }

    private static void quickSort(int[] a, int low, int high) {
        while (low < high) {
            int at = partition(a, low, high);
            if (at - low < high - at) {
                quickSort(a, low, at - 1);
                low = at + 1;
            } else {
                quickSort(a, at + 1, high);
                high = at - 1;
            }
        }
    }

    private static int partition(int[] a, int low, int high) {
        swap(a, (low + high) >>> 1, high);
        int pivot = a[high], to = low;
        for (int i = low; i < high; i++) {
            if (less(a[i], pivot)) {
                swap(a, i, to++);
            }
        }
        swap(a, to, high);
        return to;
    }

    private static boolean less(int a, int b) {
        return a < b;
    }

    private static void swap(int[] a, int i, int j) {
        int old = a[i];
        a[i] = a[j];
        a[j] = old;
    }

    private static void mergeSort(int[] a, int[] scratch, int from, int to) {
        if (to - from < 2) {
            return;
        }
        int middle = (from + to) >>> 1;
        mergeSort(a, scratch, from, middle);
        mergeSort(a, scratch, middle, to);
        merge(a, scratch, from, middle, to);
    }

    private static void merge(int[] a, int[] scratch, int from, int middle, int to) {
        System.arraycopy(a, from, scratch, from, to - from);
        int left = from, right = middle;
        for (int i = from; i < to; i++) {
            if (right >= to || left < middle && !less(scratch[right], scratch[left])) {
                a[i] = scratch[left++];
            } else {
                a[i] = scratch[right++];
            }
        }
    }

    private static void shellSort(int[] a) {
        for (int gap = a.length / 2; gap > 0; gap /= 2) {
            for (int i = gap; i < a.length; i++) {
                int value = a[i], j = i;
                for (; j >= gap && less(value, a[j - gap]); j -= gap) {
                    a[j] = a[j - gap];
                }
                a[j] = value;
            }
        }
    }

    // --- trees: a treap with parents, a trie, intervals, and the JDK's own tree.

    private static long trees() {
        Random random = new Random(5);
        Treap<Integer> treap = new Treap<>();
        Trie trie = new Trie();
        TreeMap<String, Integer> known = new TreeMap<>();
        long sum = 0;
        for (int i = 0; i < 1_500; i++) {
            int n = random.nextInt(4_000);
            treap.insert(n, random.nextInt());
            String word = Integer.toString(n * 7_919, 26);
            trie.add(word);
            known.merge(word, 1, Integer::sum);
        }
        for (int i = 0; i < 1_500; i++) {
            int n = random.nextInt(4_000);
            sum += treap.contains(n) ? treap.rank(n) : 1;
            String word = Integer.toString(n * 7_919, 26);
            Control.check(trie.count(word) == known.getOrDefault(word, 0), word);
            Map.Entry<String, Integer> floor = known.floorEntry(word);
            sum = sum * 31 + (floor == null ? 0 : floor.getValue());
        }
        return sum * 31 + treap.depth();
    }

    static final class Treap<K extends Comparable<K>> {
        private static final class Node<K> {
            final K key;
            final int priority;
            int size = 1;
            Node<K> left, right;

            Node(K key, int priority) {
                this.key = key;
                this.priority = priority;
            }

            void count() {
                size = 1 + size(left) + size(right);
            }
        }

        private Node<K> root;

        private static int size(Node<?> node) {
            return node == null ? 0 : node.size;
        }

        void insert(K key, int priority) {
            root = insert(root, key, priority);
        }

        private Node<K> insert(Node<K> node, K key, int priority) {
            if (node == null) {
                return new Node<>(key, priority);
            }
            int order = key.compareTo(node.key);
            if (order < 0) {
                node.left = insert(node.left, key, priority);
                node = node.left.priority > node.priority ? rotateRight(node) : node;
            } else if (order > 0) {
                node.right = insert(node.right, key, priority);
                node = node.right.priority > node.priority ? rotateLeft(node) : node;
            }
            node.count();
            return node;
        }

        private Node<K> rotateRight(Node<K> node) {
            Node<K> up = node.left;
            node.left = up.right;
            up.right = node;
            node.count();
            return up;
        }

        private Node<K> rotateLeft(Node<K> node) {
            Node<K> up = node.right;
            node.right = up.left;
            up.left = node;
            node.count();
            return up;
        }

        boolean contains(K key) {
            Node<K> node = root;
            while (node != null) {
                int order = key.compareTo(node.key);
                if (order == 0) {
                    return true;
                }
                node = order < 0 ? node.left : node.right;
            }
            return false;
        }

        int rank(K key) {
            int rank = 0;
            for (Node<K> node = root; node != null;) {
                if (key.compareTo(node.key) <= 0) {
                    node = node.left;
                } else {
                    rank += 1 + size(node.left);
                    node = node.right;
                }
            }
            return rank;
        }

        int depth() {
            return depth(root);
        }

        private int depth(Node<K> node) {
            return node == null ? 0 : 1 + Math.max(depth(node.left), depth(node.right));
        }
    }

    static final class Trie {
        private final Trie[] next = new Trie[36];
        private int words;

        void add(String word) {
            Trie node = this;
            for (int i = 0; i < word.length(); i++) {
                int at = Character.digit(word.charAt(i), 36);
                if (at < 0) {
                    at = 35; // the sign
                }
                if (node.next[at] == null) {
                    node.next[at] = new Trie();
                }
                node = node.next[at];
            }
            node.words++;
        }

        int count(String word) {
            Trie node = this;
            for (int i = 0; i < word.length() && node != null; i++) {
                int at = Character.digit(word.charAt(i), 36);
                node = node.next[at < 0 ? 35 : at];
            }
            return node == null ? 0 : node.words;
        }
    }

    // --- codecs: bytes are packed, coded and checked, and decoded again.

    private static long codecs() {
        byte[] plain = new byte[4_000];
        Random random = new Random(9);
        for (int i = 0; i < plain.length; i++) {
            plain[i] = (byte) (random.nextInt(4) == 0 ? random.nextInt(64) : plain[Math.max(0, i - 17)]);
        }
        Bytes packed = pack(plain);
        Bytes restored = unpack(packed);
        Control.check(restored.size == plain.length, "length " + restored.size);
        Bytes coded = base64(packed);
        Bytes varied = new Bytes();
        for (int i = 0; i < plain.length; i++) {
            Control.check(restored.data[i] == plain[i], "byte " + i);
            varied.putVarint(zigzag(plain[i] * i));
        }
        long sum = 0;
        for (int at = 0; at < varied.size;) {
            long value = varied.varint(at);
            sum = sum * 31 + (value >>> 1 ^ -(value & 1));
            at += sizeOf(value);
        }
        return sum * 31 + crc(coded) + hash(packed);
    }

    private static long zigzag(long n) {
        return n << 1 ^ n >> 63;
    }

    private static int sizeOf(long value) {
        int n = 1;
        while ((value >>>= 7) != 0) {
            n++;
        }
        return n;
    }

    static final class Bytes {
        byte[] data = new byte[64];
        int size;

        void put(int b) {
            if (size == data.length) {
                data = java.util.Arrays.copyOf(data, 2 * size);
            }
            data[size++] = (byte) b;
        }

        void putVarint(long value) {
            while ((value & ~0x7fL) != 0) {
                put((int) (value & 0x7f | 0x80));
                value >>>= 7;
            }
            put((int) value);
        }

        long varint(int at) {
            long value = 0;
            for (int shift = 0;; shift += 7) {
                int b = get(at++);
                value |= (long) (b & 0x7f) << shift;
                if (b < 0x80) {
                    return value;
                }
            }
        }

        int get(int at) {
            return data[at] & 0xff;
        }
    }

    private static Bytes pack(byte[] plain) {
        Bytes out = new Bytes();
        int[] last = new int[1 << 12];
        int at = 0;
        while (at < plain.length) {
            int slot = at + 2 < plain.length ? slotOf(plain, at) : -1;
            int from = slot < 0 ? 0 : last[slot] - 1;
            if (slot >= 0) {
                last[slot] = at + 1;
            }
            int n = slot < 0 || from < 0 || at - from > 255 ? 0 : match(plain, from, at);
            if (n > 3) {
                out.put(n);
                out.put(at - from);
                at += n;
            } else {
                out.put(0);
                out.put(plain[at++]);
            }
        }
        return out;
    }

    private static int slotOf(byte[] plain, int at) {
        return (plain[at] * 31 * 31 + plain[at + 1] * 31 + plain[at + 2]) & 0xfff;
    }

    private static int match(byte[] plain, int from, int at) {
        int n = 0;
        while (n < 255 && at + n < plain.length && plain[from + n] == plain[at + n]) {
            n++;
        }
        return n;
    }

    private static Bytes unpack(Bytes packed) {
        Bytes out = new Bytes();
        for (int at = 0; at < packed.size; at += 2) {
            int n = packed.get(at), value = packed.get(at + 1);
            if (n == 0) {
                out.put(value);
            } else {
                for (int i = 0; i < n; i++) {
                    out.put(out.get(out.size - value));
                }
            }
        }
        return out;
    }

    private static final char[] LETTERS =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".toCharArray();

    private static Bytes base64(Bytes in) {
        Bytes out = new Bytes();
        for (int at = 0; at + 2 < in.size; at += 3) {
            int bits = in.get(at) << 16 | in.get(at + 1) << 8 | in.get(at + 2);
            for (int shift = 18; shift >= 0; shift -= 6) {
                out.put(LETTERS[bits >> shift & 63]);
            }
        }
        return out;
    }

    private static long crc(Bytes in) {
        int crc = -1;
        for (int i = 0; i < in.size; i++) {
            crc ^= in.get(i);
            for (int k = 0; k < 8; k++) {
                crc = crc >>> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
            }
        }
        return ~crc;
    }

    private static long hash(Bytes in) {
        long h = 0xcbf29ce484222325L;
        for (int i = 0; i < in.size; i++) {
            h = (h ^ in.get(i)) * 0x100000001b3L;
        }
        return h;
    }

    // --- graphs: ways, parts and orders of a graph of towns.

    static final class Graph {
        final int[][] to;
        final int[][] length;

        Graph(int towns, int roads, Random random) {
            List<List<int[]>> out = new ArrayList<>();
            for (int i = 0; i < towns; i++) {
                out.add(new ArrayList<>());
            }
            for (int i = 0; i < roads; i++) {
                int a = random.nextInt(towns), b = random.nextInt(towns), far = 1 + random.nextInt(99);
                out.get(a).add(new int[] {b, far});
                out.get(b).add(new int[] {a, far});
            }
            to = new int[towns][];
            length = new int[towns][];
            for (int i = 0; i < towns; i++) {
                to[i] = out.get(i).stream().mapToInt(road -> road[0]).toArray();
                length[i] = out.get(i).stream().mapToInt(road -> road[1]).toArray();
            }
        }

        long nearest(int from) {
            int[] far = new int[to.length];
            java.util.Arrays.fill(far, Integer.MAX_VALUE);
            PriorityQueue<Visit> queue = new PriorityQueue<>();
            queue.add(new Visit(from, 0));
            long sum = 0;
            while (!queue.isEmpty()) {
                Visit visit = queue.poll();
                if (visit.far >= far[visit.town]) {
                    continue;
                }
                far[visit.town] = visit.far;
                sum = sum * 31 + visit.far;
                for (int i = 0; i < to[visit.town].length; i++) {
                    int next = visit.far + length[visit.town][i];
                    if (next < far[to[visit.town][i]]) {
                        queue.add(new Visit(to[visit.town][i], next));
                    }
                }
            }
            return sum;
        }

        int steps(int from) {
            ArrayDeque<Integer> queue = new ArrayDeque<>();
            boolean[] seen = new boolean[to.length];
            int reached = 0;
            for (queue.add(from), seen[from] = true; !queue.isEmpty(); reached++) {
                for (int next : to[queue.poll()]) {
                    if (!seen[next]) {
                        seen[next] = true;
                        queue.add(next);
                    }
                }
            }
            return reached;
        }

        int parts() {
            int[] parent = new int[to.length];
            for (int i = 0; i < parent.length; i++) {
                parent[i] = i;
            }
            int parts = parent.length;
            for (int a = 0; a < to.length; a++) {
                for (int b : to[a]) {
                    int one = rootOf(parent, a), other = rootOf(parent, b);
                    if (one != other) {
                        parent[one] = other;
                        parts--;
                    }
                }
            }
            return parts;
        }

        private static int rootOf(int[] parent, int n) {
            while (parent[n] != n) {
                parent[n] = parent[parent[n]];
                n = parent[n];
            }
            return n;
        }
    }

    static final class Visit implements Comparable<Visit> {
        final int town;
        final int far;

        Visit(int town, int far) {
            this.town = town;
            this.far = far;
        }

        @Override
        public int compareTo(Visit other) {
            return Integer.compare(far, other.far);
        }
    }

    private static long graphs() {
        Graph graph = new Graph(400, 1_200, new Random(13));
        long sum = graph.parts();
        for (int i = 0; i < 10; i++) {
            sum = sum * 31 + graph.nearest(i * 37 % 400) + graph.steps(i);
        }
        return sum;
    }

    // --- words: an index of documents, and questions to it.

    private static final String[] SYLLABLES = {"ka", "lo", "mi", "ren", "tu", "sha", "pol", "ver", "ix", "an"};

    private static long words() {
        Random random = new Random(21);
        Index index = new Index();
        for (int i = 0; i < 40; i++) {
            StringBuilder text = new StringBuilder();
            for (int k = 0; k < 120; k++) {
                text.append(SYLLABLES[random.nextInt(10)]).append(SYLLABLES[random.nextInt(10)]);
                text.append(k % 9 == 8 ? ". " : k % 5 == 4 ? ", " : " ");
            }
            index.add(i, text.toString());
        }
        long sum = 0;
        for (int i = 0; i < 200; i++) {
            String one = SYLLABLES[random.nextInt(10)] + SYLLABLES[random.nextInt(10)];
            String other = SYLLABLES[random.nextInt(10)] + SYLLABLES[random.nextInt(10)];
            sum = sum * 31 + index.best(one, other) + index.both(one, other).size();
        }
        return sum;
    }

    static final class Index {
        private final Map<String, List<Posting>> postings = new HashMap<>();

        static final class Posting {
            final int document;
            int count;

            Posting(int document) {
                this.document = document;
            }
        }

        void add(int document, String text) {
            int begin = -1;
            for (int i = 0; i <= text.length(); i++) {
                boolean letter = i < text.length() && Character.isLetter(text.charAt(i));
                if (letter && begin < 0) {
                    begin = i;
                } else if (!letter && begin >= 0) {
                    note(document, text.substring(begin, i).toLowerCase());
                    begin = -1;
                }
            }
        }

        private void note(int document, String word) {
            List<Posting> list = postings.computeIfAbsent(word, w -> new ArrayList<>());
            if (list.isEmpty() || list.get(list.size() - 1).document != document) {
                list.add(new Posting(document));
            }
            list.get(list.size() - 1).count++;
        }

        List<Integer> both(String one, String other) {
            List<Integer> found = new ArrayList<>();
            List<Posting> a = of(one), b = of(other);
            for (int i = 0, k = 0; i < a.size() && k < b.size();) {
                int order = Integer.compare(a.get(i).document, b.get(k).document);
                if (order == 0) {
                    found.add(a.get(i).document);
                }
                i += order <= 0 ? 1 : 0;
                k += order >= 0 ? 1 : 0;
            }
            return found;
        }

        int best(String... words) {
            double[] score = new double[64];
            for (String word : words) {
                List<Posting> list = of(word);
                double rare = Math.log(1 + 64.0 / (1 + list.size()));
                for (Posting p : list) {
                    score[p.document] += rare * p.count / (p.count + 1.5);
                }
            }
            int best = 0;
            for (int i = 1; i < score.length; i++) {
                best = score[i] > score[best] ? i : best;
            }
            return best;
        }

        private List<Posting> of(String word) {
            return postings.getOrDefault(word, Collections.emptyList());
        }
    }

    // --- market: orders meet, and what is left of them waits.

    static final class Order {
        final int owner;
        final boolean buys;
        final long price;
        long left;

        Order(int owner, boolean buys, long price, long amount) {
            this.owner = owner;
            this.buys = buys;
            this.price = price;
            left = amount;
        }

        boolean meets(Order other) {
            return owner != other.owner && (buys ? price >= other.price : price <= other.price);
        }

        long trade(Order other) {
            long amount = Math.min(left, other.left);
            left -= amount;
            other.left -= amount;
            return amount;
        }

        boolean isDone() {
            return left == 0;
        }
    }

    static final class Book {
        private final TreeMap<Long, ArrayDeque<Order>> bids = new TreeMap<>(Comparator.reverseOrder());
        private final TreeMap<Long, ArrayDeque<Order>> asks = new TreeMap<>();
        private final Map<Integer, Long> turnover = new HashMap<>();
        private long checksum;

        void place(Order order) {
            TreeMap<Long, ArrayDeque<Order>> others = order.buys ? asks : bids;
            while (!order.isDone() && !others.isEmpty()) {
                Map.Entry<Long, ArrayDeque<Order>> level = others.firstEntry();
                if (!match(order, level.getValue())) {
                    break;
                }
                if (level.getValue().isEmpty()) {
                    others.remove(level.getKey());
                }
            }
            if (!order.isDone()) {
                (order.buys ? bids : asks).computeIfAbsent(order.price, price -> new ArrayDeque<>()).add(order);
            }
        }

        private boolean match(Order order, ArrayDeque<Order> level) {
            boolean met = false;
            while (!order.isDone() && !level.isEmpty() && order.meets(level.peek())) {
                Order other = level.peek();
                long value = order.trade(other) * other.price;
                turnover.merge(order.owner, value, Long::sum);
                turnover.merge(other.owner, value, Long::sum);
                checksum = checksum * 31 + value;
                met = true;
                if (other.isDone()) {
                    level.poll();
                }
            }
            return met;
        }

        long depth() {
            long sum = 0;
            for (ArrayDeque<Order> level : bids.values()) {
                for (Order order : level) {
                    sum += order.left;
                }
            }
            for (Map.Entry<Long, ArrayDeque<Order>> level : asks.entrySet()) {
                sum += level.getKey() * level.getValue().size();
            }
            return sum;
        }
    }

    private static long market() {
        Random random = new Random(17);
        Book book = new Book();
        for (int i = 0; i < 1_500; i++) {
            boolean buys = random.nextBoolean();
            long price = 1_000 + (buys ? -1 : 1) * random.nextInt(20) + random.nextInt(12);
            book.place(new Order(random.nextInt(50), buys, price, 1 + random.nextInt(100)));
        }
        long sum = book.checksum + book.depth();
        for (Map.Entry<Integer, Long> e : book.turnover.entrySet()) {
            sum = sum * 17 + e.getKey() + e.getValue();
        }
        return sum;
    }

    // --- layout: text with marks becomes lines of a width, and pages.

    static final class Span {
        final String text;
        final int weight;

        Span(String text, int weight) {
            this.text = text;
            this.weight = weight;
        }

        int width() {
            int width = 0;
            for (int i = 0; i < text.length(); i++) {
                width += widthOf(text.charAt(i)) + weight;
            }
            return width;
        }

        private static int widthOf(char c) {
            switch (c) {
                case 'i': case 'l': case '.': return 3;
                case 'm': case 'w': return 9;
                default: return c < 'a' ? 7 : 6;
            }
        }
    }

    private static List<Span> spans(CharSequence text) {
        List<Span> spans = new ArrayList<>();
        int begin = 0, weight = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == ' ' || c == '*') {
                if (i > begin) {
                    spans.add(new Span(text.subSequence(begin, i).toString(), weight));
                }
                weight = c == '*' ? 1 - weight : weight;
                begin = i + 1;
            }
        }
        return spans;
    }

    private static long lines(List<Span> spans, int width) {
        int[] best = new int[spans.size() + 1];
        int[] widths = new int[spans.size()];
        for (int i = 0; i < widths.length; i++) {
            widths[i] = spans.get(i).width();
        }
        for (int end = 1; end <= widths.length; end++) {
            best[end] = Integer.MAX_VALUE;
            for (int from = end - 1, line = 0; from >= 0; from--) {
                line += widths[from] + 4;
                if (line > width) {
                    break;
                }
                best[end] = Math.min(best[end], best[from] + rest(width - line));
            }
        }
        return best[widths.length];
    }

    private static int rest(int gap) {
        return gap * gap / 16 + 1;
    }

    private static long layout() {
        Random random = new Random(19);
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 600; i++) {
            if (random.nextInt(15) == 0) {
                text.append('*');
            }
            for (int k = 2 + random.nextInt(9); k > 0; k--) {
                text.append((char) ('a' + random.nextInt(26)));
            }
            text.append(random.nextInt(10) == 0 ? ". " : " ");
        }
        List<Span> spans = spans(text);
        long sum = 0;
        for (int width = 200; width < 440; width += 40) {
            sum = sum * 31 + lines(spans, width);
        }
        StringBuilder page = new StringBuilder();
        for (Span span : spans) {
            page.append(span.weight > 0 ? "<b>" : "").append(span.text).append(span.weight > 0 ? "</b>" : "").append('\n');
        }
        return sum * 31 + page.toString().hashCode();
    }
}
