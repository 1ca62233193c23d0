package org.apache.hadoop.hbase.thrift;

import columnar.Store;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.security.UserProvider;
import org.apache.hadoop.hbase.thrift.generated.Hbase;
import org.apache.hadoop.hbase.thrift.generated.TIncrement;
import org.apache.thrift.TException;

/** Stands in the place of the gateway's own handler: every call goes over the wire to the store. */
public class ThriftHBaseServiceHandler extends Hbase.Client implements Hbase.Iface {
  final IncrementCoalescer coalescer = new IncrementCoalescer();

  public ThriftHBaseServiceHandler(Configuration conf, UserProvider users) {
    super(Store.open(Store.THRIFT1));
  }

  @Override
  public void incrementRows(List<TIncrement> increments) throws TException {
    super.incrementRows(increments);
    coalescer.acknowledged(increments.size());
  }
}
