"""Gauge: the parts that all load generators here share, the store's and WikiBench's; it imports nothing of either.

    histogram     latencies by bucket, which add up without loss
    arrivals      when requests are due, and whose fault it is that one begins late
    popularity    which of many pages or rows is asked for
    rate_search   the largest rate that a system keeps, with its interval
    rounds        who is measured when
    machine       on what it was measured
    processes     memory and processor time of the measured processes

The wires stay apart: a packed Thrift call and a page view over HTTP have nothing in common that is worth its time.
"""
