"""Behaviour switches of MediaWiki (pure): ``__NOTOC__`` and its like, which are taken out of a text.

Only words that MediaWiki knows are switches: ``__FILE__`` and ``__INIT__`` are text, and so is the word of a language
that is not listed here, for a sign too many destroys nothing.

Sources: ``MagicWordFactory`` and ``languages/messages`` of MediaWiki, extensions of Wikimedia.
"""

from __future__ import annotations

import re
from typing import Final

# Known in any case of letters.
_ANY_CASE: Final = "NOTOC FORCETOC TOC NOEDITSECTION NOGALLERY NOCC NOCONTENTCONVERT NOTC NOTITLECONVERT"
_EXACT: Final = (
    "NEWSECTIONLINK NONEWSECTIONLINK HIDDENCAT INDEX NOINDEX STATICREDIRECT EXPECTUNUSEDCATEGORY EXPECTUNUSEDTEMPLATE "
    "EXPECTEDUNCONNECTEDPAGE DISAMBIG NOGLOBAL ARCHIVEDTALK NOTALK "
    # German, French, Spanish, Portuguese, Italian, Dutch, Polish, Swedish
    "KEIN_INHALTSVERZEICHNIS KEININHALTSVERZEICHNIS INHALTSVERZEICHNIS INHALTSVERZEICHNIS_ERZWINGEN "
    "ABSCHNITTE_NICHT_BEARBEITEN KEINEGALERIE KEINE_GALERIE VERSTECKTE_KATEGORIE INDEXIEREN NICHT_INDEXIEREN "
    "NEUER_ABSCHNITTSLINK PLUS_LINK KEIN_NEUER_ABSCHNITTSLINK PERMANENTE_WEITERLEITUNG "
    "AUCUNSOMMAIRE AUCUNTDM FORCERSOMMAIRE FORCERTDM SOMMAIRE TDM SECTIONNONEDITABLE AUCUNEGALERIE CATCACHEE "
    "LIENNOUVELLESECTION AUCUNINDEX REDIRECTIONSTATIQUE "
    "NOTDC SINTDC FORZARTDC FORZARTOC TDC NOEDITARSECCIÓN SINGALERÍA NOGALERÍA CATEGORÍAOCULTA INDEXAR NOINDEXAR "
    "SEMTDC SEMSUMARIO FORCARTDC FORCARSUMARIO SUMARIO NAOEDITARSECAO SEMGALERIA CATEGORIAOCULTA CATOCULTA INDEXAR "
    "NAOINDEXAR LINKNOVASECAO "
    "NOINDICE FORZAINDICE INDICE NOMODIFICASEZIONE "
    "GEENINHOUD INHOUD INHOUD_DWINGEN FORCEERINHOUD NIETBEWERKBARESECTIE GEENGALERIJ VERBORGENCAT "
    "NIEUWESECTIEKOPPELING "
    "BEZSPISU BEZ_SPISU ZESPISEM WYMUŚ_SPIS SPIS BEZEDYCJISEKCJI BEZ_EDYCJI_SEKCJI BEZGALERII UKRYTA_KATEGORIA "
    "INGENINNEHÅLLSFÖRTECKNING INNEHÅLLSFÖRTECKNING ALLTIDINNEHÅLLSFÖRTECKNING INTEREDIGERASEKTION DOLDKAT "
    # Russian, Ukrainian, Japanese, Chinese
    "БЕЗ_ОГЛАВЛЕНИЯ БЕЗ_ОГЛ БЕЗОГЛАВЛЕНИЯ ОГЛАВЛЕНИЕ ОГЛ ОБЯЗАТЕЛЬНОЕ_ОГЛАВЛЕНИЕ ОБЯЗ_ОГЛ БЕЗ_РЕДАКТИРОВАНИЯ_РАЗДЕЛА "
    "БЕЗ_ГАЛЕРЕИ СКРЫТАЯ_КАТЕГОРИЯ ИНДЕКС БЕЗ_ИНДЕКСА БЕЗ_ЗМІСТУ БЕЗЗМІСТУ ЗМІСТ ОБОВ_ЗМІСТ БЕЗ_РЕДАГУВАННЯ "
    "目次非表示 目次強制 目次 節編集非表示 ギャラリー非表示 無目錄 无目录 強顯目錄 强显目录 目錄 目录 無段落編輯 "
    "隐藏分类 隱藏分類"
)


def _alternatives(words: str) -> str:
    return "|".join(sorted({re.escape(word) for word in words.split()}, key=len, reverse=True))


SWITCH: Final = rf"__(?:(?i:{_alternatives(_ANY_CASE)})|(?-i:{_alternatives(_EXACT)}))__"
CONTENTS: Final = re.compile(r"__TOC__", re.IGNORECASE)
