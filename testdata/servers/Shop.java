package servers;

import com.zaxxer.hikari.HikariDataSource;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

/**
 * A shop on Tomcat with 40 threads. A request books in H2, over HikariCP with 10 connections, and asks a peer.
 *
 *   well | row   row: a report has the row that all requests want, and does not commit
 *   port         of the peer
 */
public final class Shop extends HttpServlet {
    private static final HikariDataSource orders = new HikariDataSource();
    private static int peer;

    public static void main(String[] args) throws Exception {
        peer = Integer.parseInt(args[1]);
        orders.setJdbcUrl("jdbc:h2:mem:shop;LOCK_TIMEOUT=60000");
        orders.setPoolName("orders");
        book("create table stock(id int primary key, n int) as values (1, 0)");
        if (args[0].equals("row")) {
            Thread report = new Thread(Shop::report, "nightly-report");
            report.start();
            Thread.sleep(500);
        }
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("shop").toString());
        Connector connector = new Connector();
        connector.setPort(0);
        connector.setProperty("address", "127.0.0.1");
        connector.setProperty("maxThreads", "40");
        connector.setProperty("maxKeepAliveRequests", "-1");
        connector.setProperty("keepAliveTimeout", "-1");
        tomcat.setConnector(connector);
        Context context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "shop", new Shop());
        context.addServletMappingDecoded("/work", "shop");
        tomcat.start();
        Work.serve(connector.getLocalPort());
        Runtime.getRuntime().halt(0);
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        try {
            book("update stock set n = n + 1 where id = 1");
        } catch (SQLException e) {
            throw new IOException(e);
        }
        response.getWriter().write(Work.ask(peer));
    }

    private static void book(String order) throws SQLException {
        try (Connection connection = orders.getConnection(); Statement s = connection.createStatement()) {
            s.execute(order);
        }
    }

    private static void report() {
        try (Connection connection = orders.getConnection(); Statement s = connection.createStatement()) {
            connection.setAutoCommit(false);
            s.execute("update stock set n = 0 where id = 1");
            Thread.sleep(Long.MAX_VALUE);
        } catch (SQLException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
