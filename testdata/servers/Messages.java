package servers;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Sends messages to Kafka by eight threads, and reads them by another one.
 *
 *   port   of the broker
 *   wait   with it: until the broker has taken a message
 */
public final class Messages {
    private Messages() {}

    public static void main(String[] args) throws Exception {
        String broker = "127.0.0.1:" + args[0];
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(Map.of("bootstrap.servers", broker, "buffer.memory", "1000000"),
                new ByteArraySerializer(), new ByteArraySerializer());
        if (args.length > 1) {
            producer.send(new ProducerRecord<>("orders", new byte[1])).get();
        }
        AtomicInteger n = new AtomicInteger();
        ExecutorService senders = Executors.newFixedThreadPool(8, r -> daemon(r, "order-" + n.incrementAndGet()));
        for (int i = 0; i < 8; i++) {
            senders.execute(() -> send(producer));
        }
        daemon(() -> read(broker), "reader").start();
        Work.serve(0);
        Runtime.getRuntime().halt(0);
    }

    private static Thread daemon(Runnable work, String name) {
        Thread t = new Thread(work, name);
        t.setDaemon(true);
        return t;
    }

    private static void send(KafkaProducer<byte[], byte[]> producer) {
        for (;;) {
            try {
                producer.send(new ProducerRecord<>("orders", new byte[10_000]));
                Thread.sleep(100);
            } catch (InterruptedException e) {
                return;
            } catch (RuntimeException e) {
                System.err.println(e);
            }
        }
    }

    private static void read(String broker) {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(Map.of("bootstrap.servers", broker, "group.id", "readers"),
                new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of("orders"));
            for (;;) {
                consumer.poll(Duration.ofSeconds(1));
            }
        }
    }
}
