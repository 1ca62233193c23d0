"""Full-text search: an index of words kept by a trigger, and questions to it.

    words      text -> words and their stems (pure)             query      what a visitor typed -> a Query (pure)
    page_text  a page's markup -> title, headings, text (pure)  ranking    postings -> order of the pages (pure)
    postings   rows and cells of the index (pure)               spelling   words one letter away (pure)
    indexing   the trigger's function                           snippets   where in a text the words stand (pure)
    recount    the index against the pages, for ``wikka check`` places     the section in which a place stands (pure)
    nearest    names near one that no page has             suggesting names while one is being typed
    searching  a Query against the store

The index has what ``postings.of_page`` says of each page and nothing else, so a pass over every page with the same
function finds the same pages: ``recount`` and the tests do that.
"""
