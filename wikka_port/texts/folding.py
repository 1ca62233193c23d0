"""Translation of templates when they are compiled, so that a page in any language costs as much as one in English.

    {{ 'Save'|t }}                                          a text without values
    {% trans name=page_name %}Edit {{ name }}{% endtrans %}    with values; the translator must keep its HTML
    {% trans n=waiting %}{{ n }} edit{% pluralize %}{{ n }} edits{% endtrans %}

Jinja's own extension looks up each text at each view.
"""

from __future__ import annotations

import re
from typing import Any, Final

from jinja2 import Environment, nodes
from jinja2.ext import InternationalizationExtension

from wikka_port.texts.catalogue import Catalogue

FILTER: Final = "t"
_VALUE: Final = re.compile(r"%\((\w+)\)s|%%")


class FoldedTexts(InternationalizationExtension):
    """``{% trans %}`` without a plural becomes the text itself, with its values between."""

    def _make_node(
        self,
        singular: str,
        plural: str | None,
        context: str | None,
        variables: dict[str, nodes.Expr],
        plural_expr: nodes.Expr | None,
        vars_referenced: bool,
        num_called_num: bool,
    ) -> nodes.Output:
        if plural_expr is not None:
            return super()._make_node(
                singular, plural, context, variables, plural_expr, vars_referenced, num_called_num
            )
        text: str = self.environment.filters[FILTER](singular)
        return nodes.Output(list(_parts(text, variables)))


def _parts(text: str, variables: dict[str, nodes.Expr]) -> Any:
    at = 0
    for value in _VALUE.finditer(text):
        yield nodes.TemplateData(text[at : value.start()])
        yield variables[value.group(1)] if value.group(1) else nodes.TemplateData("%")
        at = value.end()
    yield nodes.TemplateData(text[at:])


def speak_in(environment: Environment, catalogue: Catalogue) -> None:
    """Compile all templates of ``environment`` in the catalogue's language."""
    environment.globals.update(language=catalogue.code, direction=catalogue.direction)
    environment.filters[FILTER] = catalogue.gettext
    environment.filters["figure"] = catalogue.figure
    environment.policies["ext.i18n.trimmed"] = True
    environment.add_extension(FoldedTexts)
    environment.install_gettext_callables(  # type: ignore[attr-defined]
        catalogue.gettext, catalogue.ngettext, newstyle=True
    )
