package servers;

import jakarta.servlet.http.HttpSession;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;

/**
 * A Spring Boot server on Tomcat. With a peer it serves, and a request asks that peer.
 *
 *   count   without a peer: so many times it asks itself, and keeps a session of each. READY: it rests.
 *   port    of the peer
 */
@RestController
@EnableAutoConfiguration
public class Spring {
    private static final RestClient client = RestClient.create();
    private static String peer;

    @GetMapping("/cart")
    List<String> cart(HttpSession session) {
        List<String> items = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            items.add(i + " " + Work.reply());
        }
        session.setAttribute("items", items);
        return items;
    }

    @GetMapping("/work")
    String work() {
        return client.get().uri("http://127.0.0.1:" + peer + "/").retrieve().body(String.class);
    }

    public static void main(String[] args) throws Exception {
        SpringApplication application = new SpringApplication(Spring.class);
        application.setDefaultProperties(Map.of("server.port", "0", "server.address", "127.0.0.1", "server.tomcat.threads.max", "40",
                "server.tomcat.max-keep-alive-requests", "-1", "server.tomcat.keep-alive-timeout", "-1"));
        peer = args.length > 1 ? args[1] : null;
        int port = ((ServletWebServerApplicationContext) application.run()).getWebServer().getPort();
        if (peer != null) {
            Work.serve(port);
            Runtime.getRuntime().halt(0);
        }
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/cart")).build();
        HttpClient client = HttpClient.newHttpClient();
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            client.send(request, HttpResponse.BodyHandlers.ofString());
        }
        Work.rest();
    }
}
