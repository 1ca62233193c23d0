"""Full-text search: an index of words kept by a trigger, and questions to it.

    words      text -> words and their stems; words one letter away (pure)
    page_text  a page's markup -> title, headings, text; the section in which a place stands (pure)
    postings   rows and cells of the index (pure)
    indexing   the trigger's function; the index against the pages, for ``wikka check``
    query      what a visitor typed -> a Query (pure)
    searching  a Query against the store, and the order of what was found
    snippets   where in a text the words stand (pure)
    nearest    names near one that no page has
    suggesting names while one is being typed

The index has what ``postings.of_page`` says of each page and nothing else, so a pass over every page with the same
function finds the same pages: ``indexing.Recount`` and the tests do that.
"""
