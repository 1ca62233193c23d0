import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/**
 * Does with a running HBase what its Thrift API cannot: one command a line on standard input, "ok" or "error ..." as the answer.
 *
 *     create TABLE SPLIT,SPLIT,...     a table of one family, f
 *     move TABLE ROW                   the row's region, to the next server by name
 *     split TABLE ROW POINT            the row's region
 */
public class HbaseOperator {
    public static void main(String[] args) throws Exception {
        try (Connection connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
                Admin admin = connection.getAdmin();
                Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8)) {
            System.out.println("ok");
            while (lines.hasNextLine()) {
                String answer = "ok";
                try {
                    carryOut(connection, admin, lines.nextLine().split(" "));
                } catch (Exception error) {
                    answer = "error " + error.toString().replace('\n', ' ');
                }
                System.out.println(answer);
            }
        }
    }

    private static void carryOut(Connection connection, Admin admin, String[] words) throws Exception {
        TableName table = TableName.valueOf(words[1]);
        switch (words[0]) {
            case "create" -> {
                List<byte[]> splits = new ArrayList<>();
                for (String split : words[2].split(",")) {
                    splits.add(bytes(split));
                }
                admin.createTable(
                        TableDescriptorBuilder.newBuilder(table).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build(),
                        splits.toArray(new byte[0][]));
            }
            case "move" -> {
                HRegionLocation found = location(connection, table, words[2]);
                admin.move(found.getRegion().getEncodedNameAsBytes(), next(admin, found.getServerName()));
            }
            case "split" -> admin.splitRegionAsync(
                    location(connection, table, words[2]).getRegion().getRegionName(), bytes(words[3])).get();
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static HRegionLocation location(Connection connection, TableName table, String row) throws Exception {
        return connection.getRegionLocator(table).getRegionLocation(bytes(row), true);
    }

    private static ServerName next(Admin admin, ServerName owner) throws Exception {
        List<ServerName> servers = new ArrayList<>(admin.getRegionServers());
        servers.sort(null);
        return servers.get((servers.indexOf(owner) + 1) % servers.size());
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
