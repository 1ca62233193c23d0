"""Full-text search: an index of words kept by a trigger, and queries against it.

    words      text -> words and their stems; words one letter away (pure)
    page_text  a page's markup -> title, headings, text; the section of a position (pure)
    postings   rows and cells of the index (pure)
    indexing   the trigger's function; the comparison of index and pages, for ``wikka check``
    query      a visitor's text -> a Query (pure)
    searching  running a Query against the store, and ranking the results
    snippets   passages of a text with the searched words (pure)
    nearest    names similar to a name without a page
    suggesting completions of a name that is being typed

The index has exactly the postings that ``postings.of_page`` gives for each page, so applying this function to every
page finds the same pages: ``indexing.Recount`` and the tests do that.
"""
