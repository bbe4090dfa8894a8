package servers;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.Statement;

/** Fills a table of H2 in memory with so many rows, changes some, and sorts them. READY: it rests. */
public final class H2 {
    private H2() {}

    public static void main(String[] args) throws Exception {
        try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:"); Statement s = connection.createStatement()) {
            s.execute("create table town(id int primary key, name varchar, people decimal(20, 2))");
            s.execute("create index names on town(name)");
            try (PreparedStatement town = connection.prepareStatement("insert into town values(?, ?, ?)")) {
                for (int i = 0; i < Integer.parseInt(args[0]); i++) {
                    town.setInt(1, i);
                    town.setString(2, "town " + i * 7_919L % 100_003);
                    town.setLong(3, i * 31L);
                    town.executeUpdate();
                }
            }
            s.executeUpdate("update town set people = people + 1 where id < 20000");
            s.executeQuery("select name, sum(people) from town group by name order by 2 desc").close();
            Work.rest();
        }
    }
}
