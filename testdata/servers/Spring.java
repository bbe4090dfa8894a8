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

/** A Spring Boot server on Tomcat. It is asked so many times, and keeps a session of each. READY: it rests. */
@RestController
@EnableAutoConfiguration
public class Spring {
    @GetMapping("/cart")
    List<String> cart(HttpSession session) {
        List<String> items = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            items.add(i + " " + Work.reply());
        }
        session.setAttribute("items", items);
        return items;
    }

    public static void main(String[] args) throws Exception {
        SpringApplication application = new SpringApplication(Spring.class);
        application.setDefaultProperties(Map.of("server.port", "0", "server.address", "127.0.0.1"));
        int port = ((ServletWebServerApplicationContext) application.run()).getWebServer().getPort();
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/cart")).build();
        HttpClient client = HttpClient.newHttpClient();
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            client.send(request, HttpResponse.BodyHandlers.ofString());
        }
        Work.rest();
    }
}
