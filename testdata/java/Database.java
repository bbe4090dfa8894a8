package truth;

import java.nio.file.Paths;
import java.net.URL;
import java.net.URLClassLoader;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

/**
 * Proves: which inlined method runs, in a database that others wrote: H2, in memory.
 *
 * In a round rows are added, joined, sorted and summed, changed and deleted. Argument: the jar of H2.
 */
public final class Database {
    private Database() {}

    public static void main(String[] args) throws Exception {
        URL[] jar = {Paths.get(args[0]).toUri().toURL()};
        Driver driver = (Driver) new URLClassLoader(jar).loadClass("org.h2.Driver").getDeclaredConstructor().newInstance();
        Connection connection = driver.connect("jdbc:h2:mem:", new Properties());
        try (Statement s = connection.createStatement()) {
            s.execute("create table town(id int primary key, name varchar, people int)");
            s.execute("create table road(a int, b int, length int)");
            s.execute("create index starts on road(a)");
        }
        Rounds.serve(() -> round(connection));
    }

    private static long round(Connection connection) throws SQLException {
        try (PreparedStatement town = connection.prepareStatement("insert into town values(?, ?, ?)");
                PreparedStatement road = connection.prepareStatement("insert into road values(?, ?, ?)");
                Statement s = connection.createStatement()) {
            for (int i = 0; i < 400; i++) {
                town.setInt(1, i);
                town.setString(2, "town " + i * 7_919 % 401);
                town.setInt(3, i * i % 5_003);
                town.executeUpdate();
                for (int k = 1; k < 4; k++) {
                    road.setInt(1, i);
                    road.setInt(2, (i * k + 17) % 400);
                    road.setInt(3, i * k % 97);
                    road.executeUpdate();
                }
            }
            long sum = sum(s, "select t.name, sum(r.length) from town t join road r on t.id = r.a where t.people > 900 "
                    + "group by t.name order by 2 desc, 1");
            sum = sum * 31 + sum(s, "select upper(name), count(*) from town where name like 'town 1%' or people between 100 and 2000 "
                    + "group by upper(name) having max(people) > 50 order by 1");
            sum = sum * 31 + sum(s, "select x.name, x.people from town x where x.people = (select max(y.people) from town y "
                    + "join road r on r.b = y.id where r.a = x.id) or x.id % 11 = 3 order by x.people, x.name");
            sum = sum * 31 + s.executeUpdate("update town set people = people + 1 where id in (select a from road where length > 60)");
            return sum * 31 + s.executeUpdate("delete from road") + s.executeUpdate("delete from town");
        }
    }

    private static long sum(Statement s, String query) throws SQLException {
        long sum = 0;
        try (ResultSet rows = s.executeQuery(query)) {
            while (rows.next()) {
                sum = sum * 31 + rows.getString(1).hashCode() + rows.getLong(2);
            }
        }
        return sum;
    }
}
