package servers;

import io.helidon.webserver.WebServer;

import java.nio.charset.StandardCharsets;

/** A Helidon server: a virtual thread for each connection. It prints READY and its port, and serves until its stdin ends. */
public final class Helidon {
    private Helidon() {}

    public static void main(String[] args) throws Exception {
        WebServer server = WebServer.builder()
                .host("127.0.0.1")
                .port(0)
                .routing(routing -> routing.get("/work", (request, response) -> response.send(Work.reply().getBytes(StandardCharsets.US_ASCII))))
                .build()
                .start();
        Work.serve(server.port());
        server.stop();
    }
}
