package org.apache.hadoop.hbase.thrift2;

import columnar.Store;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.security.UserProvider;
import org.apache.hadoop.hbase.thrift2.generated.THBaseService;

/** Stands in the place of the gateway's own handler: every call goes over the wire to the store. */
public class ThriftHBaseServiceHandler extends THBaseService.Client implements THBaseService.Iface {
  public ThriftHBaseServiceHandler(Configuration conf, UserProvider users) {
    super(Store.open(Store.THRIFT2));
  }
}
