package org.apache.hadoop.hbase.thrift2;

import org.apache.hadoop.conf.Configuration;
import org.apache.hbase.thirdparty.org.eclipse.jetty.server.Server;
import org.apache.thrift.server.TServer;
import org.apache.thrift.server.TSimpleServer;
import org.apache.thrift.transport.TServerTransport;

/** Stands in the place of HBase's gateway: the store's port answers already, by both transports. */
public class ThriftServer extends org.apache.hadoop.hbase.thrift.ThriftServer {
  private final TServer socket = new TSimpleServer(new TServer.Args((TServerTransport) null));
  private final Server http = new Server();

  public ThriftServer(Configuration conf) {
    super(conf);
  }

  @Override
  public int run() {
    return 0;
  }

  @Override
  public TServer getTserver() {
    return socket;
  }

  @Override
  public Server getHttpServer() {
    return http;
  }

  @Override
  public void stop() {
    // The store goes on.
  }
}
