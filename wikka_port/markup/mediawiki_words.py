"""(pure) MediaWiki's words in other languages than English: a row for each language of the largest Wikipedias.

    option    how a picture is shown: ``|mini|``, also with a value: ``|mini=Other.jpg|``
    size      the same, also with a number: ``|hochkant 1.2|``
    page      a word with a number alone: ``|seite 3|``, ``|seite=3|``
    value     a word with a value alone: ``|verweis=Page|``
    pixels    the unit behind a width: ``|200пкс|``
    redirect  ``#WEITERLEITUNG [[Page]]``
    toc       the place of the contents: ``__INHALTSVERZEICHNIS__``
    switch    other words between underscores
    links     templates that lead to further pages: ``{{Hauptartikel|Page}}``
    notes     templates where the footnotes stand: ``{{Einzelnachweise}}``
    number    the sign between thousands and that of the fraction ("nbsp": a blank that breaks no line), and "2" if four
              digits have none between them
    forms     the rule by which a number takes one of several forms (``mediawiki_values``)
    6, 7, ..  names of namespaces beside those that a dump states

The words are those of MediaWiki's own language files, but for ``links`` and ``notes``, which are names of templates in
the Wikipedias.  "_" stands for a blank, except between underscores.  MediaWiki knows the English words in every
language, and others only in a wiki of their language.

``mediawiki_names`` has the names of variables and functions.  Knows nothing of texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Final

_ROWS: Final[Mapping[str, str]] = {
    "de": """
        option miniatur mini rechts links ohne zentriert gerahmt rahmenlos rand grundlinie tiefgestellt tief
        hochgestellt hoch oben text-oben mitte unten text-unten; size hochkant; page seite; value verweis
        alternativtext; redirect WEITERLEITUNG; toc INHALTSVERZEICHNIS; switch KEIN_INHALTSVERZEICHNIS
        KEININHALTSVERZEICHNIS KEINE_GALERIE KEINEGALERIE INHALTSVERZEICHNIS_ERZWINGEN ABSCHNITTE_NICHT_BEARBEITEN
        KEINE_TITELKONVERTIERUNG KEINE_INHALTSKONVERTIERUNG NEUER_ABSCHNITTSLINK PLUS_LINK KEIN_NEUER_ABSCHNITTSLINK
        KEIN_PLUS_LINK VERSTECKTE_KATEGORIE WARTUNGSKATEGORIE INDIZIEREN NICHT_INDIZIEREN PERMANENTE_WEITERLEITUNG;
        links hauptartikel siehe_auch; notes einzelnachweise; number . ,; forms one; 2 Benutzerin; 3
        Benutzerin_Diskussion; 6 Bild; 7 Bild_Diskussion
    """,
    "fr": """
        option vignette droite gauche néant neant centré cadre encadré encadre sans_cadre non_encadré non_encadre
        bordure ligne_de_base base indice ind exposant exp haut haut-texte haut-txt milieu bas bas-texte bas-txt; size
        redresse; value lien; redirect REDIRECTION; toc SOMMAIRE TDM; switch AUCUNSOMMAIRE AUCUNETDM AUCUNTDM
        AUCUNEGALERIE FORCERSOMMAIRE FORCERTDM SECTIONNONEDITABLE SANSCONVERSIONTITRE SANSCT SANSCONVERSIONCONTENU
        SANSCC LIENNOUVELLESECTION AUCUNLIENNOUVELLESECTION CATCACHEE AUCUNINDEX REDIRECTIONSTATIQUE; links
        article_détaillé articles_détaillés article_principal voir_aussi; notes références; number nbsp ,; forms
        zero-one; 1 Discuter; 3 Discussion_Utilisateur; 7 Discussion_Fichier Discussion_Image; 11 Discussion_Modèle;
        13 Discussion_Aide; 15 Discussion_Catégorie
    """,
    "es": """
        option miniaturadeimagen miniatura mini derecha dcha der izquierda izda izq ninguna ninguno nada no centro
        centrado centrada centrar marco enmarcado enmarcada sinmarco sin_enmarcar sinenmarcar borde; page página
        pagina; value enlace vínculo vinculo; redirect REDIRECCIÓN REDIRECCION; toc TDC; switch SIN_TDC NOTDC SINTDC
        SIN_GALERÍA SINGALERÍA NOGALERÍA NOGALERIA FORZAR_TDC FORZARTDC FORZARTOC NO_EDITAR_SECCIÓN NOEDITARSECCIÓN
        NOEDITARSECCION NOCONVERTIRTITULO NOCONVERTIRTÍTULO NOCONVERTIRCONTENIDO VINCULARANUEVASECCION
        NOVINCULARANUEVASECCION CATEGORÍAOCULTA INDEXAR NOINDEXAR REDIRECCIONESTATICA REDIRECCIÓNESTÁTICA; links
        artículo_principal véase_también ap vt; notes listaref; number . , 2; forms one; 6 Imagen; 7 Imagen_Discusión
    """,
    "pt": """
        option miniaturadaimagem miniatura direita esquerda nenhum centro commoldura comborda semmoldura semborda
        borda linhadebase acima meio abaixo; size superiordireito; page página; value ligação; redirect
        REDIRECIONAMENTO REDIRECIONAR; toc TDC SUMARIO SUMÁRIO; switch SEMTDC SEMSUMARIO SEMSUMÁRIO FORCARTDC
        FORÇARTDC FORCARSUMARIO FORÇARSUMÁRIO NAOEDITARSECAO NÃOEDITARSEÇÃO SEMEDITARSECAO SEMEDITARSEÇÃO SEMGALERIA
        SEMCONVERTERTITULO SEMCONVERTERTÍTULO SEMCT SEMCONVERTERCONTEUDO SEMCONVERTERCONTEÚDO SEMCC LINKDENOVASECAO
        LINKDENOVASEÇÃO LIGACAODENOVASECAO LIGAÇÃODENOVASEÇÃO SEMLINKDENOVASECAO SEMLINKDENOVASEÇÃO CATEGORIAOCULTA
        CATOCULTA INDEXAR NAOINDEXAR NÃOINDEXAR REDIRECIONAMENTOESTATICO REDIRECIONAMENTOESTÁTICO; links
        artigo_principal ver_artigo_principal ver_também; notes referências; number . , 2; forms zero-one; 6 Imagem
        Ficheiro; 7 Imagem_Discussão Ficheiro_Discussão
    """,
    "it": """
        option miniatura min destra sinistra nessuno centro bordo; page pagina; redirect RINVIA RINVIO RIMANDO; switch
        INDICE NOINDICE; links vedi_anche; number nbsp ,; forms one; 6 Immagine; 7 Discussioni_immagine
    """,
    "nl": """
        option miniatuur rechts links geen gecentreerd omkaderd kaderloos rand grondlijn boven tekst-boven midden
        beneden tekst-beneden; size rechtop; page pagina; value koppeling verwijzing taal klasse; redirect
        DOORVERWIJZING; toc INHOUD; switch GEENINHOUD GEEN_GALERIJ GEENGALERIJ INHOUD_DWINGEN FORCEERINHOUD
        NIETBEWERKBARESECTIE GEENPAGINANAAMCONVERSIE GEENTITELCONVERSIE GEENTC GEENINHOUDCONVERSIE GEENIC
        NIEUWESECTIELINK NIEUWESECTIEKOPPELING GEENNIEUWESECTIELINK GEENNIEUWKOPJEVERWIJZING VERBORGENCAT GEENINDEX
        STATISCHEDOORVERWIJZING STATISCHEREDIRECT; links hoofdartikel zie_hoofdartikel zie_ook; notes bronvermelding;
        number . ,; forms one; 6 Afbeelding; 7 Overleg_afbeelding
    """,
    "pl": """
        option mały prawo lewo brak centruj ramka bezramki bez_ramki tło góra środek dół; page strona; redirect PATRZ
        PRZEKIERUJ TAM; toc SPIS; switch BEZSPISU BEZGALERII ZESPISEM BEZEDYCJISEKCJI LINKNOWEJSEKCJI KATEGORIAUKRYTA
        INDEKSUJ NIEINDEKSUJ; links osobny_artykuł główny_artykuł zobacz_też; notes przypisy; number nbsp , 2; forms
        polish; 2 Użytkowniczka; 3 Dyskusja_użytkowniczki; 6 Grafika; 7 Dyskusja_grafiki
    """,
    "sv": """
        option miniatyr mini höger vänster ingen centrerad inramad ram ramlös kantlinje baslinje ned upp topp
        text-topp mitten botten text-botten; size stående; page sida; value länk; redirect OMDIRIGERING; toc
        INNEHÅLLSFÖRTECKNING; switch INGENINNEHÅLLSFÖRTECKNING ALLTIDINNEHÅLLSFÖRTECKNING INTEREDIGERASEKTION
        INGETGALLERI NYTTAVSNITTLÄNK DOLDKAT INDEXERA STATISKOMDIRIGERING; links huvudartikel se_även; notes fotnoter;
        number nbsp ,; forms one; 6 Bild; 7 Bilddiskussion; 13 Hjälp_diskussion
    """,
    "cs": """
        option náhled vpravo vlevo žádné střed rám bezrámu okraj; page strana; value jazyk; pixels pixelů; redirect
        PŘESMĚRUJ; toc OBSAH; switch BEZOBSAHU BEZGALERIE VŽDYOBSAH BEZEDITOVATČÁST BEZKONVERZENADPISU
        BEZKONVERZEOBSAHU LINKPŘIDATKOMENTÁŘ SKRÝTKAT INDEXOVAT NEINDEXOVAT STATICKÉPŘESMĚROVÁNÍ; links podrobně
        viz_též hlavní_článek; number nbsp ,; forms czech
    """,
    "tr": """
        option küçükresim küçük sağ sol yok orta çerçeveli çerçeve çerçevesiz sınır tabançizgisi altçizgi alt üst üs
        tepe tavan metin-tavan metin-tepe merkez taban metin-taban; size dikey; page sayfa; value bağlantı sınıf;
        pixels pik piksel; redirect YÖNLENDİRME YÖNLENDİR YÖNLENDIRME YÖNLENDIR;
        toc İÇİNDEKİLER; switch İÇİNDEKİLERYOK GALERİYOK
        İÇİNDEKİLERZORUNLU DEĞİŞTİRYOK DÜZENLEMEYOK BAŞLIKDÖNÜŞÜMÜYOK BDY İÇERİKDÖNÜŞÜMÜYOK İDY YENİBAŞLIKBAĞLANTISI
        YENİBAŞLIKBAĞLANTISIYOK GİZLİKAT GİZLİKATEGORİ DİZİN ENDEKS DİZİNYOK ENDEKSYOK STATİKYÖNLENDİRME
        SABİTYÖNLENDİRME; links ana ana_madde ayrıca_bakınız; notes kaynakça; number . ,; forms one; 6 Resim; 7
        Resim_tartışma; 8 MedyaViki; 9 MedyaViki_tartışma
    """,
    "vi": """
        option nhỏ phải trái không giữa khung; size đứng; page trang; value liên_kết; redirect ĐỔI; switch
        KHÔNGCHUYỂNTÊN KHÔNGCHUYỂNNỘIDUNG LIÊNKẾTMỤCMỚI KHÔNGLIÊNKẾTMỤCMỚI THỂLOẠIẨN ĐỔIHƯỚNGNHẤTĐỊNH; links chính
        bài_chính xem_thêm; notes tham_khảo; number . ,; forms none; 6 Hình; 7 Thảo_luận_Hình; 10 Tiêu_bản; 11
        Thảo_luận_Tiêu_bản
    """,
    "id": """
        option jmpl jempol mini miniatur ka kanan ki kiri nir tanpa pus pusat bing bingkai nirbing tanpabingkai tepi
        batas gada garis_dasar upa atas atek atas-teks tengah bawah batek bawah-teks; size lurus tegak; page hal
        halaman; value pra pranala al alternatif; redirect ALIH; switch TANPAKONVERSIJUDUL NIRKODUL TANPAKONVERSIISI
        NIRKOSI PRANALABAGIANBARU PRABABA NIRPRABABA KATEGORITERSEMBUNYI KATSEM INDEKS TANPAINDEKS NIRDEKS
        PENGALIHANSTATIK PENGALIHANSTATIS; links utama artikel_utama lihat_pula; number . ,; forms none; 7
        Gambar_Pembicaraan; 9 MediaWiki_Pembicaraan; 11 Templat_Pembicaraan
    """,
    "ru": """
        option мини миниатюра справа слева без центр обрамить безрамки граница основание под над сверху текст-сверху
        посередине снизу текст-снизу; size сверхусправа; page страница; value ссылка альт; pixels пкс; redirect
        ПЕРЕНАПРАВЛЕНИЕ ПЕРЕНАПР; toc ОГЛАВЛЕНИЕ ОГЛ; switch БЕЗ_ОГЛАВЛЕНИЯ БЕЗ_ОГЛ ОБЯЗАТЕЛЬНОЕ_ОГЛАВЛЕНИЕ ОБЯЗ_ОГЛ
        БЕЗ_РЕДАКТИРОВАНИЯ_РАЗДЕЛА БЕЗ_ГАЛЕРЕИ БЕЗ_ПРЕОБРАЗОВАНИЯ_ЗАГОЛОВКА БЕЗ_ПРЕОБРАЗОВАНИЯ_ТЕКСТА
        ССЫЛКА_НА_НОВЫЙ_РАЗДЕЛ БЕЗ_ССЫЛКИ_НА_НОВЫЙ_РАЗДЕЛ СКРЫТАЯ_КАТЕГОРИЯ ИНДЕКС БЕЗ_ИНДЕКСА
        СТАТИЧЕСКОЕ_ПЕРЕНАПРАВЛЕНИЕ; links основная_статья главная_статья см._также; notes примечания; number nbsp , 2;
        forms slavic; 2 Участница; 3 Обсуждение_участницы; 6 Изображение; 7 Обсуждение_изображения
    """,
    "uk": """
        option міні мініатюра праворуч ліворуч обрамити рамка межа границя основа під зверху текст-зверху посередині
        знизу текст-знизу; size зверхуправоруч; page сторінка; value посилання; redirect ПЕРЕНАПРАВЛЕННЯ
        ПЕРЕАДРЕСАЦІЯ; toc ЗМІСТ; switch БЕЗ_ЗМІСТУ БЕЗЗМІСТУ ОБОВ_ЗМІСТ БЕЗ_РЕДАГУВАННЯ БЕЗ_ПЕРЕТВОРЕННЯ_ЗАГОЛОВКУ
        БЕЗ_ПЕРЕТВОРЕННЯ_ТЕКСТУ ПОСИЛАННЯ_НА_НОВИЙ_РОЗДІЛ БЕЗ_ПОСИЛАННЯ_НА_НОВИЙ_РОЗДІЛ ПРИХОВ_КАТ ПРИХОВАНА_КАТЕГОРІЯ
        ІНДЕКС БЕЗ_ІНДЕКСУ СТАТИЧНЕ_ПЕРЕНАПРАВЛЕННЯ; links основна основна_стаття докладніше див._також; notes
        примітки; number nbsp ,; forms slavic; -1 Спеціальні; 6 Зображення; 7 Обговорення_зображення; 11
        Обговорення_шаблона
    """,
    "bg": """
        option мини вдясно дясно д вляво ляво л н център центр ц рамка врамка безрамка ръб контур; pixels пкс п;
        redirect ВИЖ ПРЕНАСОЧВАНЕ; links основна вижте; number nbsp , 2; forms one
    """,
    "ja": """
        option サムネイル 右 左 なし 無し 中央 フレーム フレームなし 境界 ボーダー 下線 ベースライン 下付き 上付き
        上端 文上端 中心 下端 文下端; size 右上; page ページ; value 代替画像 リンク 代替文; pixels ピクセル; redirect
        転送 リダイレクト; toc 目次; switch 目次非表示 ギャラリー非表示 目次強制 節編集非表示 セクション編集非表示
        タイトル変換無効 タイトルコンバート拒否 内容変換無効 内容変換抑制 新しい節リンク 新しいセクションリンク
        新セクションリンク 新しい節リンク非表示 カテゴリ非表示 カテ非表示 非表示カテ インデックス インデックス拒否
        静的転送 二重転送解消無効 二重転送修正無効; links 主記事; notes 脚注リスト; number , .; forms none; 6 画像; 7
        画像‐ノート
    """,
    "ko": """
        option 섬네일 썸네일 축소판 오른쪽 왼쪽 없음 가운데 프레임 프레임없음 테두리 밑줄 아래첨자 위첨자 위 글자위
        텍스트위 중간 아래 글자아래 텍스트아래; size 위오른쪽; page 문서; value 링크 대체글; pixels 픽셀; redirect
        넘겨주기; toc 목차; switch 목차숨김 화랑숨김 갤러리숨김 목차보임 목차표시 단락편집숨김 제목변환없음 제변없음
        제목변환안함 제변안함 내용변환없음 내변없음 내용변환안함 내변안함 새글쓰기 새글쓰기숨기기 숨은분류 색인
        색인안함 색인거부 넘겨주기고정; links 본문 주_문서 상세 참고; notes 각주; number , .; forms none; -1 특; 6
        그림; 7 그림토론; 9 MediaWiki토론
    """,
    "zh": """
        option 缩略图 縮圖 右 左 无 無 居中 置中 有框 无框 無框 边框 邊框 基线 子 下標 超 上標 顶部 垂直置頂 文字顶部
        文字置頂 中间 垂直置中 底部 垂直置底 文字底部 文字置底 替代文字; size 右上; page 页数 頁; value 链接 連結 替代
        替代文本 类 類別 语言 語言; pixels 像素 页 頁; redirect 重定向 重新導向; toc 目录 目錄; switch 无目录 無目錄
        无图库 無圖庫 强显目录 強制目錄 強顯目錄 无编辑段落 无段落编辑 無段落編輯 不转换标题 不轉換標題 不转换内容
        不轉換內容 新段落链接 无新段落链接 隐藏分类 隱藏分類 索引 无索引 静态重定向 靜態重新導向; links 主条目 主條目
        参见 參見 另见 另見; number , .; forms none; -2 媒体 媒體; -1 特殊; 1 讨论 討論 对话 對話; 2 用户 用戶; 3
        用户讨论 用戶討論 用户对话 用戶對話; 6 图像 圖像 文件 档案 檔案; 7 图像讨论 圖像討論 圖像對話 文件讨论
        文件討論 文件對話 檔案討論 檔案對話; 10 模板 樣板 样板; 11 模板讨论 模板討論 模板對話 樣板討論 樣板對話; 12
        帮助 幫助; 13 帮助讨论 幫助討論 幫助對話; 14 分类 分類; 15 分类讨论 分類討論 分類對話
    """,
    "ar": """
        option تصغير مصغر يمين يسار بدون بلا مركز إطار بإطار لاإطار حد حدود خط_أساسي فرعي; size معدول; page صفحة;
        pixels بك عن; redirect تحويل; switch وصلة_قسم_جديد تصنيف_مخفي فهرسة لافهرسة تحويلة_إستاتيكية تحويلة_ساكنة;
        links مفصلة طالع_أيضا; notes مراجع; forms arabic; -2 وسائط; 6 صورة; 7 نقاش_الصورة
    """,
    "fa": """
        option بندانگشتی انگشتی انگشتدان راست چپ هیچ وسط قاب بیقاب بی_قاب حاشیه همکف زیر زبر بالا متن-بالا میانه پایین
        متن-پایین; size ایستاده; page صفحه; value پیوند جایگزین کلاس زبان; pixels پیکسل; redirect تغییر_مسیر
        تغییرمسیر; toc فهرست; switch بافهرست بیفهرست بیبخش بینگارخانه بخشجدید ردهپنهان نمایه بینمایه عنوانتبدیلنشده
        محتواتبدیلنشده تغییرمسیرثابت; links اصلی نوشتار_اصلی همچنین_ببینید; notes پانویس; forms zero-one; -2 رسانه
        رسانهای; 6 تصویر; 7 بحث_تصویر
    """,
    "he": """
        option ממוזער ימין שמאל ללא מרכז ממוסגר מסגרת לא_ממוסגר ללא_מסגרת גבולות גבול שורת_הבסיס תחתי עילי למעלה באמצע
        למטה; size ימין_למעלה; page דף; value קישור טקסט; pixels פיקסלים; redirect הפניה; toc תוכן_עניינים תוכן;
        switch ללא_תוכן_עניינים ללא_תוכן ללא_גלריה ללא_עריכה קטגוריה_מוסתרת לחיפוש לא_לחיפוש הפניה_קבועה; links
        הפניה_לערך_מורחב ראו_גם; notes הערות_שוליים; number , .; forms hebrew; 2 משתמשת; 3 שיחת_משתמשת; 6 תמונה; 7
        שיחת_תמונה
    """,
}
LANGUAGES: Final = frozenset(_ROWS)  # that have words here beside the English ones
_FALLBACKS: Final[Mapping[str, str]] = {"uk": "ru"}  # languages whose wikis know another one's words, too
Row = Mapping[str, tuple[str, ...]]  # kind or English word -> words


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one language beside the English ones; those of all languages, if it is not known."""

    options: frozenset[str]  # of pictures: alone, or with "="
    keys: frozenset[str]  # with "="
    sizes: frozenset[str]  # with a number behind a blank
    pixels: frozenset[str]
    links: frozenset[str]  # names of templates, as ``notes``
    notes: frozenset[str]
    forms: str = "one"
    number: tuple[str, str] | None = None  # the signs in numbers; None: unknown
    ungrouped: int = 3  # as many digits have no signs between them
    namespaces: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


def row_of(text: str) -> Row:
    """Return the words of a row by their kinds; entries are parted by semicolons, words by blanks."""
    entries = (entry.split() for entry in text.split(";"))
    return {kind: tuple(words) for kind, *words in entries}


def rows_for(rows: Mapping[str, str], language: str) -> list[Row]:
    """Return the rows for a wiki's language, the first one first; all of them for a language without a row."""
    code = main_language(language)
    if code == "en":
        return []
    codes = [code, _FALLBACKS.get(code, "")] if code in rows else list(rows)
    return [row_of(rows[one]) for one in codes if one]


def main_language(language: str) -> str:
    """Return "zh" for "zh-Hant-TW"."""
    code = language.lower().partition("-")[0]
    return "en" if code == "simple" else code


def folded(word: str) -> str:
    """Return a word as the table has it: "_" for blanks, and no characters of zero width, which Persian has."""
    return word.replace("\u200c", "").replace(" ", "_")


def every(kind: str) -> frozenset[str]:
    """Return the words of a kind in all languages."""
    return _of(kind, (row_of(text) for text in _ROWS.values()))


@cache
def words_of(language: str) -> Words:
    """Return the words of a language, by its code; "" for an unknown one."""
    rows = rows_for(_ROWS, language)
    is_known = len(rows) < len(_ROWS)
    options, sizes = _of("option", rows), _of("size", rows)
    pages, pixels = _of("page", rows), _of("pixels", rows)
    first = rows[0] if is_known and rows else {"number": (",", ".")}
    signs = tuple(sign.replace("nbsp", "\xa0") for sign in first.get("number", ()))
    return Words(
        options=options | sizes,
        keys=options | sizes | pages | _of("value", rows),
        sizes=sizes | pages,
        pixels=pixels | {"px"},
        links=frozenset(word.replace("_", " ") for word in _of("links", rows)),
        notes=frozenset(word.replace("_", " ") for word in _of("notes", rows)),
        forms=first.get("forms", ("one",))[0],
        number=(signs[0], signs[1]) if is_known and signs else None,
        ungrouped=4 if "2" in signs else 3,
        namespaces=MappingProxyType(_namespaces(rows)) if is_known else MappingProxyType({}),
    )


def _of(kind: str, rows: Iterable[Row]) -> frozenset[str]:
    return frozenset(word for row in rows for word in row.get(kind, ()))


def _namespaces(rows: Iterable[Row]) -> dict[str, int]:
    """Return the further names of namespaces, by their names in lower case."""
    return {
        name.replace("_", " ").lower(): int(kind)
        for row in rows
        for kind, names in row.items()
        if kind.lstrip("-").isdigit()
        for name in names
    }
