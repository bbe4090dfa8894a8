package demo;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/**
 * Shows: what a profile of an ordinary service looks like. A toy order service, for `make demo`: customers
 * send orders as JSON, clerks parse and price them, an auditor searches and hashes them, an archive
 * compresses them, and all book into one ledger under one lock.
 *
 * Argument: seconds to run (30). Prints READY when orders flow, and at the end what was done.
 */
public final class Demo {
    private static volatile boolean closing;

    private final BlockingQueue<String> inbox = new ArrayBlockingQueue<>(200);
    private final BlockingQueue<Order> outbox = new ArrayBlockingQueue<>(200);
    private final Ledger ledger = new Ledger();
    private final AtomicLong priced = new AtomicLong();

    public static void main(String[] args) throws Exception {
        int seconds = args.length > 0 ? Integer.parseInt(args[0]) : 30;
        Demo shop = new Demo();
        List<Thread> threads = new ArrayList<>();
        threads.add(start("customer-1", () -> shop.sendOrders(1)));
        threads.add(start("customer-2", () -> shop.sendOrders(2)));
        threads.add(start("clerk-1", shop::serveOrders));
        threads.add(start("clerk-2", shop::serveOrders));
        threads.add(start("archive", shop::archiveOrders));
        threads.add(start("auditor", shop::audit));
        while (shop.priced.get() < 100) {
            Thread.sleep(5);
        }
        System.out.println("READY");
        System.out.flush();
        Thread.sleep(seconds * 1_000L);
        closing = true;
        for (Thread thread : threads) {
            thread.join(5_000);
        }
        System.out.println(shop.priced + " orders, " + shop.ledger.total() + " cents");
    }

    /** What a thread does until the shop closes. */
    interface Work {
        void run() throws Exception;
    }

    private static Thread start(String name, Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception wrong) {
                throw new IllegalStateException(name, wrong);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private void sendOrders(long seed) throws InterruptedException {
        Random random = new Random(seed);
        while (!closing) {
            inbox.offer(writeOrder(random), 100, TimeUnit.MILLISECONDS);
        }
    }

    private static String writeOrder(Random random) {
        StringBuilder json = new StringBuilder("{\"customer\":\"c").append(random.nextInt(500)).append("\",\"items\":[");
        int items = 3 + random.nextInt(20);
        for (int i = 0; i < items; i++) {
            json.append(i == 0 ? "" : ",").append("{\"sku\":\"A-").append(random.nextInt(10_000)).append("-").append(random.nextInt(10));
            json.append("\",\"count\":").append(1 + random.nextInt(9)).append(",\"price\":").append(random.nextInt(100_000)).append('}');
        }
        // Some customers' systems send what nobody can read.
        return json.append(random.nextInt(20) == 0 ? "]" : "]}").toString();
    }

    private void serveOrders() throws InterruptedException {
        while (!closing) {
            String text = inbox.poll(100, TimeUnit.MILLISECONDS);
            if (text == null) {
                continue;
            }
            try {
                Order order = Order.fromJson(text);
                order.price();
                ledger.book(order);
                priced.incrementAndGet();
                outbox.offer(order, 10, TimeUnit.MILLISECONDS);
            } catch (Json.Unreadable refused) {
                ledger.refuse(refused);
            }
        }
    }

    private void archiveOrders() throws InterruptedException {
        List<Order> batch = new ArrayList<>();
        Archive archive = new Archive();
        while (!closing) {
            Order order = outbox.poll(100, TimeUnit.MILLISECONDS);
            if (order != null) {
                batch.add(order);
            }
            if (batch.size() >= 50) {
                archive.store(batch);
                batch.clear();
            }
        }
    }

    private void audit() throws Exception {
        Auditor auditor = new Auditor();
        while (!closing) {
            auditor.inspect(ledger.lastEntries());
            Thread.sleep(2);
        }
    }

    /** An order and its price. */
    static final class Order {
        final String customer;
        final List<Item> items = new ArrayList<>();
        long cents;

        Order(String customer) {
            this.customer = customer;
        }

        @SuppressWarnings("unchecked")
        static Order fromJson(String text) {
            Map<String, Object> fields = (Map<String, Object>) new Json(text).value();
            Order order = new Order((String) fields.get("customer"));
            for (Object one : (List<Object>) fields.get("items")) {
                Map<String, Object> item = (Map<String, Object>) one;
                order.items.add(new Item((String) item.get("sku"), (Long) item.get("count"), (Long) item.get("price")));
            }
            return order;
        }

        void price() {
            items.sort(Comparator.comparing((Item item) -> item.sku).thenComparing(item -> -item.price));
            Map<Character, Long> byGroup = items.stream()
                .collect(Collectors.groupingBy(item -> item.sku.charAt(2), Collectors.summingLong(item -> item.count * item.price)));
            for (long sum : byGroup.values()) {
                for (Discount discount : DISCOUNTS) {
                    sum = discount.apply(sum);
                }
                cents += sum;
            }
        }
    }

    static final class Item {
        final String sku;
        final long count;
        final long price;

        Item(String sku, long count, long price) {
            this.sku = sku;
            this.count = count;
            this.price = price;
        }
    }

    /** A rule that lowers a sum; several, so that the call is megamorphic. */
    interface Discount {
        long apply(long sum);
    }

    private static final Discount[] DISCOUNTS = {
        sum -> sum > 100_000 ? sum - 500 : sum,
        sum -> Math.round(sum * (1 - Math.pow(Math.log1p(sum), 0.5) / 1_000)),
        new Rounding(),
        new Discount() {
            @Override
            public long apply(long sum) {
                return sum % 2 == 0 ? sum : sum - 1;
            }
        },
    };

    static final class Rounding implements Discount {
        @Override
        public long apply(long sum) {
            return sum / 5 * 5;
        }
    }

    /** A small recursive JSON reader. */
    static final class Json {
        static final class Unreadable extends RuntimeException {
            private static final long serialVersionUID = 1;

            Unreadable(String what) {
                super(what);
            }
        }

        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        Object value() {
            char c = peek();
            if (c == '{') {
                return object();
            } else if (c == '[') {
                return array();
            } else if (c == '"') {
                return string();
            }
            return number();
        }

        private Map<String, Object> object() {
            Map<String, Object> fields = new LinkedHashMap<>();
            expect('{');
            while (peek() != '}') {
                String name = string();
                expect(':');
                fields.put(name, value());
                skipComma();
            }
            expect('}');
            return fields;
        }

        private List<Object> array() {
            List<Object> values = new ArrayList<>();
            expect('[');
            while (peek() != ']') {
                values.add(value());
                skipComma();
            }
            expect(']');
            return values;
        }

        private String string() {
            expect('"');
            int end = text.indexOf('"', at);
            String value = text.substring(at, end);
            at = end + 1;
            return value;
        }

        private Long number() {
            int from = at;
            while (Character.isDigit(peek())) {
                at++;
            }
            return Long.valueOf(text.substring(from, at));
        }

        private void skipComma() {
            if (peek() == ',') {
                at++;
            }
        }

        private void expect(char c) {
            if (peek() != c) {
                throw new Unreadable(c + " expected at " + at);
            }
            at++;
        }

        private char peek() {
            if (at >= text.length()) {
                throw new Unreadable("it ends too soon");
            }
            return text.charAt(at);
        }
    }

    /** The sums of all customers, under one lock. */
    static final class Ledger {
        private final Map<String, Long> sums = new HashMap<>();
        private final List<String> entries = new ArrayList<>();
        private long refused;

        synchronized void book(Order order) {
            sums.merge(order.customer, order.cents, Long::sum);
            entries.add(order.customer + ":" + order.cents + ":" + order.items.size());
            if (entries.size() > 400) {
                entries.subList(0, 200).clear();
            }
        }

        synchronized void refuse(Json.Unreadable why) {
            refused++;
            entries.add("refused:" + refused + ":" + why.getMessage());
        }

        synchronized List<String> lastEntries() {
            return new ArrayList<>(entries);
        }

        synchronized long total() {
            return sums.values().stream().mapToLong(Long::longValue).sum();
        }
    }

    /** Compresses orders that are done. */
    static final class Archive {
        private long bytes;

        void store(List<Order> batch) {
            StringBuilder text = new StringBuilder();
            for (Order order : batch) {
                text.append(order.customer).append('\t').append(order.cents).append('\n');
                order.items.forEach(item -> text.append(item.sku).append(' ').append(item.count).append('\n'));
            }
            byte[] plain = text.toString().getBytes(StandardCharsets.UTF_8);
            CRC32 crc = new CRC32();
            crc.update(plain);
            bytes += compress(plain) + (crc.getValue() & 1);
        }

        private static int compress(byte[] plain) {
            Deflater deflater = new Deflater(Deflater.BEST_COMPRESSION);
            try {
                deflater.setInput(plain);
                deflater.finish();
                byte[] out = new byte[4_096];
                int total = 0;
                while (!deflater.finished()) {
                    total += deflater.deflate(out);
                }
                return total;
            } finally {
                deflater.end();
            }
        }
    }

    /** Looks for what is odd, and signs what it saw. */
    static final class Auditor {
        private static final Pattern ODD = Pattern.compile("^c(\\d*)(7|77)(\\d*):([0-9]+?)(00|99)?:(1\\d|[2-9])$");
        private byte[] signature = new byte[0];

        void inspect(List<String> entries) throws Exception {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            digest.update(signature);
            for (String entry : entries) {
                Matcher matcher = ODD.matcher(entry);
                if (matcher.matches()) {
                    digest.update(matcher.group(4).getBytes(StandardCharsets.US_ASCII));
                }
            }
            signature = digest.digest();
        }
    }
}
