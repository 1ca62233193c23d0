package columnar;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.filter.BigDecimalComparator;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.BinaryComponentComparator;
import org.apache.hadoop.hbase.filter.BinaryPrefixComparator;
import org.apache.hadoop.hbase.filter.BitComparator;
import org.apache.hadoop.hbase.filter.ColumnPaginationFilter;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.filter.DependentColumnFilter;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.FilterWrapper;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.FirstKeyValueMatchingQualifiersFilter;
import org.apache.hadoop.hbase.filter.FuzzyRowFilter;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
import org.apache.hadoop.hbase.filter.LongComparator;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter;
import org.apache.hadoop.hbase.filter.NullComparator;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.filter.ParseFilter;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.QualifierFilter;
import org.apache.hadoop.hbase.filter.RandomRowFilter;
import org.apache.hadoop.hbase.filter.RegexStringComparator;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.filter.SkipFilter;
import org.apache.hadoop.hbase.filter.SubstringComparator;
import org.apache.hadoop.hbase.filter.TimestampsFilter;
import org.apache.hadoop.hbase.filter.ValueFilter;
import org.apache.hadoop.hbase.filter.WhileMatchFilter;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;
import org.apache.hadoop.hbase.thrift2.ThriftUtilities;

/**
 * Writes filters as HBase's client puts them into filterBytes: bytes in hex, a tab, and what they are.
 *
 * <pre>SerializedFilters STRINGS</pre>
 *
 * Each line of the file STRINGS is a filter string, which HBase's own parser reads.  Then come filters that the client
 * makes by constructors: with the string that means the same, or "refused" and a word of the reason.
 */
public final class SerializedFilters {
  private static final byte[] F = Bytes.toBytes("f");
  private static final byte[] Q = Bytes.toBytes("q");
  private static final byte[] V = Bytes.toBytes("v");
  private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

  private SerializedFilters() {
  }

  public static void main(String[] args) throws Exception {
    for (String text : Files.readAllLines(Path.of(args[0]))) {
      if (!text.isBlank()) {
        write(text, new ParseFilter().parseFilterString(Bytes.toBytes(text)));
      }
    }
    means();
    refused();
  }

  private static void means() throws IOException {
    Filter prefix = new PrefixFilter(Bytes.toBytes("r"));
    Filter page = new PageFilter(3);
    write("FamilyFilter(>=, 'binary:')", new FilterList());
    write("FamilyFilter(>=, 'binary:')", new FilterList(FilterList.Operator.MUST_PASS_ONE));
    write("PrefixFilter('r')", new FilterList(prefix));
    write("PrefixFilter('r') AND PageFilter(3)", new FilterList(prefix, page));
    write("PrefixFilter('r') OR PageFilter(3)",
      new FilterList(FilterList.Operator.MUST_PASS_ONE, prefix, page));
    write("FirstKeyOnlyFilter() AND (PrefixFilter('r') OR PageFilter(3))", new FilterList(
      new FirstKeyOnlyFilter(), new FilterList(FilterList.Operator.MUST_PASS_ONE, prefix, page)));
    write("PrefixFilter('r') AND (FirstKeyOnlyFilter() AND PageFilter(3))",
      new FilterList(prefix, new FilterList(new FirstKeyOnlyFilter(), page)));
    write("PrefixFilter('r')", new FilterWrapper(prefix));
    write("SKIP (PrefixFilter('r') AND PageFilter(3))", new SkipFilter(new FilterList(prefix, page)));
    write("WHILE SKIP PrefixFilter('r')", new WhileMatchFilter(new SkipFilter(prefix)));
    write("KeyOnlyFilter(true)", new KeyOnlyFilter(true));
    write("KeyOnlyFilter(false)", new KeyOnlyFilter());
    write("RowFilter(=, 'regexstring:a.b')", new RowFilter(CompareOperator.EQUAL, new RegexStringComparator("a.b")));
    write("RowFilter(=, 'regexstringnocase:a.b')", new RowFilter(CompareOperator.EQUAL,
      new RegexStringComparator("a.b", Pattern.CASE_INSENSITIVE | Pattern.DOTALL)));
    write("RowFilter(=, 'regexstringnocase:(?m-s)a.b')", new RowFilter(CompareOperator.EQUAL,
      new RegexStringComparator("a.b", Pattern.CASE_INSENSITIVE | Pattern.MULTILINE)));
    write("RowFilter(!=, 'regexstring:(?-s)a.b')",
      new RowFilter(CompareOperator.NOT_EQUAL, new RegexStringComparator("a.b", 0)));
    write("RowFilter(=, 'regexstring:\\Qa.b\\E')", new RowFilter(CompareOperator.EQUAL,
      new RegexStringComparator("a.b", Pattern.LITERAL | Pattern.DOTALL)));
    write("ValueFilter(=, 'substring:it''s')",
      new ValueFilter(CompareOperator.EQUAL, new SubstringComparator("IT'S")));
    write("QualifierFilter(<, 'binaryprefix:ab')",
      new QualifierFilter(CompareOperator.LESS, new BinaryPrefixComparator(Bytes.toBytes("ab"))));
    write("SingleColumnValueFilter('f', 'q', =, 'binary:v', false, true)",
      new SingleColumnValueFilter(F, Q, CompareOperator.EQUAL, V));
    SingleColumnValueFilter single = new SingleColumnValueFilter(F, Q, CompareOperator.GREATER, V);
    single.setFilterIfMissing(true);
    single.setLatestVersionOnly(false);
    write("SingleColumnValueFilter('f', 'q', >, 'binary:v', true, false)", single);
    write("DependentColumnFilter('f', 'q', false)", new DependentColumnFilter(F, Q));
    write("DependentColumnFilter('f', 'q', true, <, 'binary:v')",
      new DependentColumnFilter(F, Q, true, CompareOperator.LESS, new BinaryComparator(V)));
    write("ColumnRangeFilter('', true, 'q', false)", new ColumnRangeFilter(null, true, Q, false));
    write("TimestampsFilter(1, 5)", new TimestampsFilter(Arrays.asList(5L, 1L)));
    write("TimestampsFilter(1, 5)", new TimestampsFilter(Arrays.asList(5L, 1L), true));
  }

  private static void refused() throws IOException {
    write("refused FuzzyRowFilter", new FuzzyRowFilter(List.of(new Pair<>(V, new byte[] { 0 }))));
    write("refused RandomRowFilter", new RandomRowFilter(0.5f));
    write("refused MultiRowRangeFilter",
      new MultiRowRangeFilter(new ArrayList<>(List.of(new MultiRowRangeFilter.RowRange(F, true, Q, false)))));
    write("refused FirstKeyValueMatchingQualifiersFilter",
      new FirstKeyValueMatchingQualifiersFilter(java.util.Set.of(Q)));
    write("refused begins at a column", new ColumnPaginationFilter(3, Q));
    write("refused LongComparator", new ValueFilter(CompareOperator.LESS, new LongComparator(7)));
    write("refused NullComparator", new ValueFilter(CompareOperator.EQUAL, new NullComparator()));
    write("refused BitComparator",
      new ValueFilter(CompareOperator.EQUAL, new BitComparator(V, BitComparator.BitwiseOp.AND)));
    write("refused BigDecimalComparator",
      new ValueFilter(CompareOperator.EQUAL, new BigDecimalComparator(java.math.BigDecimal.ONE)));
    write("refused BinaryComponentComparator",
      new ValueFilter(CompareOperator.EQUAL, new BinaryComponentComparator(V, 1)));
    write("refused JONI", new RowFilter(CompareOperator.EQUAL,
      new RegexStringComparator("a", RegexStringComparator.EngineType.JONI)));
    write("refused flags", new RowFilter(CompareOperator.EQUAL, new RegexStringComparator("a", Pattern.COMMENTS)));
    RegexStringComparator latin = new RegexStringComparator("a");
    latin.setCharset(StandardCharsets.ISO_8859_1);
    write("refused ISO-8859-1", new RowFilter(CompareOperator.EQUAL, latin));
    write("refused RandomRowFilter", new FilterList(new PrefixFilter(V), new RandomRowFilter(0.5f)));
  }

  private static void write(String means, Filter filter) throws IOException {
    StringBuilder hex = new StringBuilder();
    for (byte one : ThriftUtilities.filterFromHBase(filter)) {
      hex.append(String.format("%02x", one));
    }
    OUT.println(hex + "\t" + means);
  }
}
