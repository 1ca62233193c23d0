"""Rights: who may read, write, comment on and administer which page.

acl      the language of access lists (pure)          words    lists in plain words (pure)
rules    lists of a page and of the site (pure)       stored   reading and changing them in the store
judging  ``may``: the one decision (pure)             memory   rules and groups in memory
guarded  the wiki as one visitor may see it; handlers and actions get only this view
"""
