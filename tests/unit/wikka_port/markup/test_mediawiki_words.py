"""Pages of MediaWikis in the words of their languages: pictures, links to main articles, names of the page, numbers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from wikka_port.markup.mediawiki import Converted, Dialect, convert
from wikka_port.markup.mediawiki_names import names_of
from wikka_port.markup.mediawiki_words import LANGUAGES, words_of

NAMES = {"": 0, "Talk": 1, "User": 2, "Project": 4, "File": 6, "Template": 10, "Category": 14}


@dataclass(frozen=True)
class Page:
    language: str
    picture: str  # what is between the brackets of a picture, with its caption
    caption: str
    main: str  # name of a template that leads to the main article
    name: str  # variable with the name of the page
    number: str  # 1234567.5, formatted
    choice: str = "#if"  # the function
    contents: str = ""  # where the contents stand
    redirect: str = ""


PAGES = [
    Page("en", "Image:A.jpg|thumb|right|upright=1.2|200px|alt=x|A ship", "A ship", "Main", "PAGENAME", "1,234,567.5"),
    Page(
        "de", "Bild:A.jpg|mini|links|hochkant=1.2|200px|verweis=Hafen|Ein Schiff", "Ein Schiff", "Hauptartikel",
        "SEITENNAME", "1.234.567,5", contents="__INHALTSVERZEICHNIS__", redirect="WEITERLEITUNG",
    ),
    Page(
        "fr", "File:A.jpg|vignette|gauche|redresse 1.2|lien=Port|Un navire", "Un navire", "Article détaillé",
        "NOMPAGE", "1\xa0234\xa0567,5", contents="__SOMMAIRE__", redirect="REDIRECTION",
    ),
    Page(
        "es", "Imagen:A.jpg|miniaturadeimagen|izq|sin enmarcar|enlace=Puerto|Un barco", "Un barco", "AP",
        "NOMBREDEPÁGINA", "1.234.567,5", "#si", contents="__TDC__", redirect="REDIRECCIÓN",
    ),
    Page(
        "pt", "Imagem:A.jpg|miniaturadaimagem|esquerda|superiordireito=1.2|ligação=Porto|Um navio", "Um navio",
        "Artigo principal", "NOMEDAPÁGINA", "1.234.567,5", "#se", redirect="REDIRECIONAMENTO",
    ),
    Page(
        "it", "Immagine:A.jpg|miniatura|sinistra|pagina 3|bordo|Una nave", "Una nave", "Vedi anche",
        "TITOLOPAGINA", "1\xa0234\xa0567,5", "#se", redirect="RINVIA",
    ),
    Page(
        "nl", "Afbeelding:A.jpg|miniatuur|links|rechtop=1.2|verwijzing=Haven|Een schip", "Een schip", "Hoofdartikel",
        "PAGINANAAM", "1.234.567,5", "#als", contents="__INHOUD__", redirect="DOORVERWIJZING",
    ),
    Page(
        "pl", "Grafika:A.jpg|mały|lewo|bez ramki|strona=2|Statek", "Statek", "Osobny artykuł",
        "NAZWASTRONY", "1\xa0234\xa0567,5", contents="__SPIS__", redirect="PATRZ",
    ),
    Page(
        "sv", "Bild:A.jpg|miniatyr|vänster|stående 1.2|länk=Hamn|Ett skepp", "Ett skepp", "Huvudartikel",
        "SIDNAMN", "1\xa0234\xa0567,5", "#om", contents="__INNEHÅLLSFÖRTECKNING__", redirect="OMDIRIGERING",
    ),
    Page(
        "cs", "File:A.jpg|náhled|vlevo|rám|200pixelů|strana 3|Loď", "Loď", "Podrobně",
        "NÁZEVSTRANY", "1\xa0234\xa0567,5", "#když", contents="__OBSAH__", redirect="PŘESMĚRUJ",
    ),
    Page(
        "tr", "Resim:A.jpg|küçükresim|sol|dikey=1.2|200piksel|bağlantı=Liman|Bir gemi", "Bir gemi", "Ana madde",
        "SAYFAADI", "1.234.567,5", "#eğer", contents="__İÇİNDEKİLER__", redirect="YÖNLENDİRME",
    ),
    Page(
        "vi", "Hình:A.jpg|nhỏ|trái|đứng=1.2|liên kết=Cảng|Một con tàu", "Một con tàu", "Bài chính",
        "TÊNTRANG", "1.234.567,5", redirect="ĐỔI",
    ),
    Page(
        "id", "File:A.jpg|jmpl|ki|lurus=1.2|hal 3|pra=Pelabuhan|Sebuah kapal", "Sebuah kapal", "Artikel utama",
        "PAGENAME", "1.234.567,5", "#jika", redirect="ALIH",
    ),
    Page(
        "ru", "Изображение:A.jpg|мини|слева|сверхусправа 1.2|200пкс|ссылка=Порт|Корабль", "Корабль", "Основная статья",
        "НАЗВАНИЕ_СТРАНИЦЫ", "1\xa0234\xa0567,5", contents="__ОГЛАВЛЕНИЕ__", redirect="ПЕРЕНАПРАВЛЕНИЕ",
    ),
    Page(
        "uk", "Зображення:A.jpg|міні|ліворуч|мини|200пкс|посилання=Порт|Корабель", "Корабель", "Докладніше",
        "НАЗВА_СТОРІНКИ", "1\xa0234\xa0567,5", "#якщо", contents="__ЗМІСТ__", redirect="ПЕРЕНАПРАВЛЕННЯ",
    ),
    Page(
        "bg", "File:A.jpg|мини|ляво|рамка|180п|Кораб", "Кораб", "Основна", "СТРАНИЦА", "1\xa0234\xa0567,5",
        redirect="ВИЖ",
    ),
    Page(
        "ja", "画像:A.jpg|サムネイル|左|右上=1.2|200ピクセル|代替文=絵|船", "船", "主記事", "ページ名", "1,234,567.5",
        "#もし", contents="__目次__", redirect="転送",
    ),
    Page(
        "ko", "그림:A.jpg|섬네일|왼쪽|위오른쪽=1.2|200픽셀|대체글=그림|배", "배", "본문", "문서이름", "1,234,567.5",
        "#만약", contents="__목차__", redirect="넘겨주기",
    ),
    Page(
        "zh-hant", "檔案:A.jpg|縮圖|左|無框|200像素|替代文字|連結=港|一艘船", "一艘船", "主條目", "頁面名稱",
        "1,234,567.5", contents="__目錄__", redirect="重新導向",
    ),
    Page(
        "zh", "文件:A.jpg|缩略图|居中|无框|200像素|链接=港|一艘船", "一艘船", "主条目", "页面名称", "1,234,567.5",
        contents="__目录__", redirect="重定向",
    ),
    Page(
        "ar", "صورة:A.jpg|تصغير|يسار|معدول=1.2|200بك|سفينة", "سفينة", "مفصلة", "اسم_الصفحة", "1234567.5", "#لو",
        redirect="تحويل",
    ),
    Page(
        "fa", "تصویر:A.jpg|بندانگشتی|چپ|ایستاده=1.2|200پیکسل|پیوند=بندر|کشتی", "کشتی", "اصلی", "نام_صفحه",
        "1234567.5", "#اگر", contents="__فهرست__", redirect="تغییرمسیر",
    ),
    Page(
        "he", "תמונה:A.jpg|ממוזער|שמאל|לא ממוסגר|200פיקסלים|קישור=נמל|ספינה", "ספינה", "הפניה לערך מורחב",
        "שם הדף", "1,234,567.5", "#תנאי", contents="__תוכן_עניינים__", redirect="הפניה",
    ),
]  # fmt: skip
CODES = [page.language for page in PAGES]


def made(text: str, language: str, title: str = "Riga") -> Converted:
    return convert(text, namespaces=Dialect.of(NAMES, language=language), title=title)


@pytest.mark.parametrize("page", PAGES, ids=CODES)
def test_a_page_in_the_words_of_its_language(page: Page) -> None:
    source = (
        f"{{{{{page.main}|Harbours}}}}\n{page.contents}\n[[{page.picture}]]\n"
        f"'''{{{{{page.name}}}}}''' has {{{{formatnum:1234567.5}}}} {{{{{page.choice}:x|ships|cars}}}}."
    )
    found = made(source, page.language)
    words, picture = f"**Riga** has {page.number} ships.", f'##""[image: A.jpg]""## {page.caption}'
    shown = f"{{{{toc}}}}\n{picture}\n\n{words}" if page.contents else f"{words}\n\n{picture}"
    assert found.text == f"→ [[Harbours]]\n\n{shown}"
    assert found.unconverted == {"image": 1}


@pytest.mark.parametrize("page", [page for page in PAGES if page.redirect], ids=lambda page: page.language)
def test_a_redirect_in_the_word_of_its_language(page: Page) -> None:
    assert made(f"#{page.redirect} [[dog]]", page.language).redirect == "Dog"
    assert made(f"#{page.redirect.lower()} [[dog]]", page.language).redirect == "Dog" or page.language == "tr"


def test_every_row_has_a_page_here() -> None:
    assert {code.partition("-")[0] for code in CODES} == {"en", *LANGUAGES}


@pytest.mark.parametrize(
    ("language", "options", "caption"),
    [
        ("en", "thumb|links", "links"),  # a wiki knows the words of its own language alone
        ("en", "thumb|no", "no"),
        ("de", "mini|no", "no"),
        ("de", "mini|gauche", "gauche"),
        ("de-at", "mini|links|Bild", "Bild"),
        ("", "mini|gauche|Bild", "Bild"),
        ("lv", "mini|gauche|Bild", "Bild"),
        ("de", "thumb|right|Bild", "Bild"),  # and the English ones
        ("de", "Mini|Links", "Links"),  # in their case of letters
        ("de", "mini|seite 3|Bild", "Bild"),
        ("de", "mini|seite drei", "seite drei"),
        ("de", "mini|3 Seiten", "3 Seiten"),
        ("de", "mini=Klein.jpg|Bild", "Bild"),
        ("fa", "بی\u200cقاب|کشتی", "کشتی"),
    ],
)
def test_options_of_a_picture_are_those_of_the_language(language: str, options: str, caption: str) -> None:
    assert made(f"[[File:A.jpg|{options}]]", language).text == f'##""[image: A.jpg]""## {caption}'


@pytest.mark.parametrize(
    ("language", "link", "is_picture"),
    [("de", "Bild:A.jpg", True), ("en", "Bild:A.jpg", False), ("", "Bild:A.jpg", False), ("it", "Image:A.jpg", True)],
)
def test_former_names_of_namespaces_are_those_of_the_language(language: str, link: str, is_picture: bool) -> None:
    assert ("image: A.jpg" in made(f"[[{link}]]", language).text) is is_picture


def test_names_that_the_dump_states_come_before_former_ones() -> None:
    dialect = Dialect.of({**NAMES, "Bild": 100}, language="de")
    assert dialect.namespace("Bild:A") == 100
    assert dialect.title("Benutzerin:ada") == "User:Ada"


@pytest.mark.parametrize(
    ("language", "call", "shown"),
    [
        ("de", "{{VOLLER_SEITENNAME}} {{SEITENNAME_URL}}", 'User"":""A b A_b'),
        ("de", "x {{seitenname}}", "x [seitenname]"),
        ("en", "x {{SEITENNAME}}", "x [SEITENNAME]"),
        ("ja", "{{ページ名}} {{小文字:ABC}}", "A b abc"),
        ("de", "{{GROSS:abc}} {{#wechsle:b|a=1|#standard=2}}", "ABC 2"),
        ("ru", "{{PLURAL:21|дом|дома|домов}} {{PLURAL:3|дом|дома|домов}} {{PLURAL:11|дом|дома|домов}}",
         "дом дома домов"),
        ("pl", "{{PLURAL:1|dom|domy|domów}} {{PLURAL:22|dom|domy|domów}} {{PLURAL:21|dom|domy|domów}}",
         "dom domy domów"),
        ("cs", "{{PLURAL:1|dům|domy|domů}} {{PLURAL:4|dům|domy|domů}} {{PLURAL:5|dům|domy|domů}}",
         "dům domy domů"),
        ("fr", "{{PLURIEL:0|maison|maisons}} {{PLURAL:2|maison|maisons}}", "maison maisons"),
        ("ja", "{{PLURAL:5|a|b}}", "a"),
        ("ar", "{{PLURAL:0|a|b|c|d|e|f}}{{PLURAL:2|a|b|c|d|e|f}}{{PLURAL:105|a|b|c|d|e|f}}{{PLURAL:99|a|b|c|d|e|f}}"
               "{{PLURAL:100|a|b|c|d|e|f}}", "acdef"),
        ("pl", "{{formatnum:1234}} {{formatnum:12345}}", "1234 12\xa0345"),
        ("ko", "a {{기본정렬:나}}b", "a b"),
        ("de", "{{formatnum:1.234,5|R}}", "1234.5"),
    ],
)  # fmt: skip
def test_names_of_variables_and_functions(language: str, call: str, shown: str) -> None:
    assert made(call, language, "User:A b").text.partition("\n\n|!|")[0] == shown


def test_words_between_underscores_in_other_languages_are_gone() -> None:
    assert made("a __KEIN_INHALTSVERZEICHNIS__ b __NICHT_INDIZIEREN__ c", "de").text == "a b c"
    assert made("__بی\u200cنمایه__a", "fa").text == "a"


def test_names_of_functions_have_any_case_of_letters_and_those_of_variables_one() -> None:
    assert names_of("de").function(" GROSS ") == "uc"
    assert names_of("de").function("#Wechsle") == "#switch"
    assert names_of("en").function("gross") == "gross"
    assert names_of("").function("minus") == "lc"
    assert names_of("de").variable("SEITENNAME") == "PAGENAME"
    assert names_of("de").variable("Seitenname") == "Seitenname"
    assert words_of("zh-Hant-TW").number == (",", ".")
