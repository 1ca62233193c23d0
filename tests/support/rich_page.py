"""A page with every construct of the markup, to look at and for tests of the layout."""

RICH_PAGE = """======Tidal rivers======
A **tidal river** is one whose flow and level are //influenced by tides//. The [[River mouth|mouth]] is where
it meets the sea; see also RiverBasin and [[Spring tide]]. More at [[https://example.org/tides an outside page]].

{{toc levels="2-3"}}

=====How tides reach inland=====
>>**In short**
Water comes twice a day, and goes twice a day. The ''bore'' is its front.>>The wave travels against the stream. Where the bed narrows it grows steep and may break: a ##tidal bore##. Press #%Ctrl#%+#%F#% to find the word in this page. Some of what was believed is ++no longer++ held; the rest ££still is££.

~an indented line
~- rivers with a bore
~~- the Severn
~~- the Qiantang
~- rivers without
~1) first, the flood
~1) then the slack
~1) then the ebb

====A table of rivers====
|=|River|=|Length km|=|Greatest bore m||
||Severn||{text-align:right}354||{text-align:right}2.8||
||Qiantang||{text-align:right}688||{text-align:right}9.0||
||A river with a rather long name, to see how the cell wraps||{text-align:right}1||{text-align:right}0.1||

=====In code=====
%%(python;1;bore.py)
def height(width_m: float, depth_m: float) -> float:
    \"\"\"Metres; Green's law.\"\"\"
    return 0.5 * (120 / width_m) ** 0.5 * (8 / depth_m) ** 0.25  # a line that is long enough to need a scroll bar on phones
%%

@@centred words@@
----
=====Lately=====
{{recentchanges limit="5"}}
"""  # noqa: E501 - a paragraph is one line
