"""The JSON API of the wiki, ``/api/v1``, and its description in OpenAPI 3.1.

``operations`` is the list of all operations; routes and description are made from it.  ``records`` has the types of
parameters and bodies, which are checked against them and described by them.
"""
