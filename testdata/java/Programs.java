package truth;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.text.DecimalFormat;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.SAXParserFactory;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import org.w3c.dom.Document;
import org.xml.sax.InputSource;
import org.xml.sax.helpers.DefaultHandler;

/**
 * Proves: which inlined method runs, on code that others wrote: large parts of the JDK at work, each of another kind.
 *
 * Its rounds are of the named kind. Argument: the kind.
 */
public final class Programs {
    private Programs() {}

    public static void main(String[] args) throws Exception {
        Rounds.serve(kind(args[0]));
    }

    private static Rounds.Round kind(String name) throws Exception {
        switch (name) {
            case "xml": return xml();
            case "streams": return Programs::streams;
            case "maps": return Programs::maps;
            case "regex": return regex();
            case "numbers": return Programs::numbers;
            case "format": return Programs::format;
            case "objects": return Programs::objects;
            default: throw new IllegalArgumentException(name);
        }
    }

    private static Rounds.Round xml() throws Exception {
        StringBuilder text = new StringBuilder("<?xml version=\"1.0\"?><orders>");
        Random random = new Random(1);
        for (int i = 0; i < 300; i++) {
            text.append("<order id=\"").append(i).append("\" kind='k").append(random.nextInt(7)).append("'><item n=\"")
                .append(random.nextInt(99)).append("\">text &amp; more ").append(random.nextLong()).append("</item><!-- c --></order>");
        }
        String document = text.append("</orders>").toString();
        return () -> {
            long[] sum = new long[1];
            SAXParserFactory.newInstance().newSAXParser().parse(new InputSource(new StringReader(document)), new DefaultHandler() {
                @Override
                public void characters(char[] chars, int start, int length) {
                    sum[0] = sum[0] * 31 + length;
                }
            });
            Document dom = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(new InputSource(new StringReader(document)));
            StringWriter out = new StringWriter();
            TransformerFactory.newInstance().newTransformer().transform(new DOMSource(dom), new StreamResult(out));
            return sum[0] ^ out.toString().hashCode();
        };
    }

    private static long streams() {
        List<String> words = new Random(2).ints(4_000, 0, 900).mapToObj(i -> "w" + i * 7919).collect(Collectors.toList());
        Map<Integer, List<String>> byLength = words.stream().filter(w -> w.hashCode() % 3 != 0).sorted()
            .collect(Collectors.groupingBy(String::length, TreeMap::new, Collectors.toList()));
        long sum = byLength.values().stream().flatMap(List::stream).mapToLong(w -> w.chars().filter(Character::isDigit).count()).sum();
        List<String> sorted = new ArrayList<>(words);
        Collections.sort(sorted, (a, b) -> a.length() != b.length() ? b.length() - a.length() : a.compareTo(b));
        return sum * 31 + sorted.get(17).hashCode() + words.stream().distinct().skip(5).limit(300).mapToInt(String::hashCode).sum();
    }

    private static long maps() {
        Random random = new Random(3);
        Map<Object, Integer> hash = new HashMap<>();
        Map<Long, String> tree = new TreeMap<>();
        ConcurrentHashMap<String, Long> concurrent = new ConcurrentHashMap<>();
        PriorityQueue<Long> queue = new PriorityQueue<>();
        ArrayDeque<Long> deque = new ArrayDeque<>();
        for (int i = 0; i < 3_000; i++) {
            long n = random.nextInt(500);
            hash.merge(n % 2 == 0 ? (Object) n : "s" + n, 1, Integer::sum);
            tree.put(n * 31, "v");
            concurrent.compute("k" + n % 97, (k, v) -> v == null ? n : v + n);
            queue.add(n);
            deque.addLast(n);
            if (i % 3 == 0) {
                deque.addFirst(queue.poll() + deque.pollLast());
                tree.remove((long) random.nextInt(15_500));
            }
        }
        long sum = queue.size() + tree.size();
        for (Map.Entry<String, Long> e : concurrent.entrySet()) {
            sum += e.getKey().hashCode() * e.getValue();
        }
        for (long n : deque) {
            sum = sum * 31 + n;
        }
        return sum + hash.values().stream().mapToInt(i -> i).sum();
    }

    private static Rounds.Round regex() {
        Pattern mail = Pattern.compile("([\\w.]+)@((?:[a-z]+\\.)+)(org|com)");
        Pattern log = Pattern.compile("^(\\d+)-(\\d+) \\[(\\w+)] (.*?)(?:: (\\S+))?$", Pattern.MULTILINE);
        StringBuilder text = new StringBuilder();
        Random random = new Random(4);
        for (int i = 0; i < 400; i++) {
            text.append(random.nextInt(9_999)).append('-').append(i).append(" [main] some words here user").append(random.nextInt(50))
                .append(i % 3 == 0 ? "@mail.example.org" : "").append(": value").append(i).append('\n');
        }
        String all = text.toString();
        return () -> {
            long sum = 0;
            for (Matcher m = mail.matcher(all); m.find(); ) {
                sum = sum * 31 + m.group(1).length() + m.start(2);
            }
            for (Matcher m = log.matcher(all); m.find(); ) {
                sum = sum * 31 + Integer.parseInt(m.group(2)) + m.group(4).length();
            }
            return sum + all.replaceAll("[aeiou](\\w)", "<$1>").hashCode() + all.split("\\s+|\\d{3}").length;
        };
    }

    private static long numbers() {
        Random random = new Random(5);
        BigInteger modulus = new BigInteger(512, random).setBit(511).setBit(0);
        BigInteger x = new BigInteger(500, random), sum = BigInteger.ZERO;
        for (int i = 0; i < 6; i++) {
            sum = sum.add(x.modPow(BigInteger.valueOf(65_537 + 2 * i), modulus)).multiply(x).mod(modulus).xor(x.shiftLeft(i));
            x = x.add(sum).gcd(modulus).add(x.divide(BigInteger.valueOf(1_000_003)));
        }
        BigDecimal d = new BigDecimal(sum).movePointLeft(60);
        double f = 0;
        for (int i = 1; i < 300; i++) {
            d = d.add(BigDecimal.valueOf(i * 1_000L, 7).multiply(BigDecimal.valueOf(i))).setScale(9, RoundingMode.HALF_UP);
            f += Double.parseDouble(Double.toString(Math.sqrt(i) / 3)) + Float.parseFloat("" + i * 0.1f);
        }
        return sum.hashCode() * 31L + d.hashCode() + Double.doubleToLongBits(f);
    }

    private static long format() {
        DateTimeFormatter dates = DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss EEE", Locale.ROOT);
        DecimalFormat decimals = new DecimalFormat("#,##0.00;(#)");
        LocalDateTime at = LocalDateTime.of(2020, 1, 1, 0, 0);
        long sum = 0;
        for (int i = 0; i < 200; i++) {
            at = at.plusHours(i * 37L).withDayOfMonth(1 + i % 28);
            String line = String.format(Locale.ROOT, "%5d|%-8s|%08.3f|%x %s", i, "s" + i, i / 7.0, i * 31, dates.format(at));
            sum = sum * 31 + line.hashCode() + decimals.format(i * 1_234.5).length();
            sum += LocalDateTime.parse(dates.format(at), dates).getDayOfYear();
            byte[] utf = ("\u00e4" + line + "\u20ac").getBytes(StandardCharsets.UTF_8);
            sum += new String(utf, StandardCharsets.UTF_8).toUpperCase(Locale.ROOT).indexOf("T0");
        }
        return sum;
    }

    private static final class Node implements Serializable {
        private static final long serialVersionUID = 1;
        private final String name;
        private final long[] values;
        private final List<Node> children = new ArrayList<>();

        Node(String name, int values) {
            this.name = name;
            this.values = new long[values];
        }

        long sum() {
            long sum = name.hashCode();
            for (long v : values) {
                sum = sum * 31 + v;
            }
            for (Node child : children) {
                sum += child.sum() >>> 1;
            }
            return sum;
        }
    }

    private static long objects() throws Exception {
        Random random = new Random(6);
        List<Node> nodes = new ArrayList<>();
        for (int i = 0; i < 400; i++) {
            Node node = new Node("node" + i, random.nextInt(9));
            for (int k = 0; k < node.values.length; k++) {
                node.values[k] = random.nextLong();
            }
            if (i > 0) {
                nodes.get(random.nextInt(i)).children.add(node);
            }
            nodes.add(node);
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(nodes.get(0));
        }
        ConcurrentSkipListMap<String, Long> sums = new ConcurrentSkipListMap<>();
        for (Node node : nodes) {
            sums.put(node.name, node.sum());
        }
        long sum = 0;
        for (long v : sums.values()) {
            sum = sum * 17 + v;
        }
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            return sum + ((Node) in.readObject()).sum();
        }
    }
}
