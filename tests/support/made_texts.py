"""Sentences of our own making, of which ``made_edits`` makes edits: articles, sources, pitches."""

from __future__ import annotations

import random
from typing import Final

_SUBJECTS: Final = (
    "the harbour of Emden", "a tidal river", "the mill at Oker", "the botanical garden", "the copper mine",
    "the narrow-gauge railway", "the observatory", "a beehive", "the parish register", "the sourdough starter",
    "the telescope mirror", "the kernel's scheduler", "the town hall", "the peat bog", "the regional dialect",
    "the weaving loom", "the glacier", "the public library", "the old lighthouse", "the fish ladder",
)  # fmt: skip
_DID: Final = (
    "was rebuilt in {year} after a fire", "has been measured each spring since {year}", "lost a third of its length",
    "is described in a survey of {year}", "was surveyed by two students from Kiel", "needs {number} litres a day",
    "differs from its neighbours in three respects", "has {number} entries, most of them short",
    "served {number} people until {year}", "was closed in {year} and opened again two years later",
    "shows the same pattern at a smaller scale", "is read from the second register", "freezes only in hard winters",
    "can be recognised by its red brick", "was paid for by the guild of weavers", "is older than the chronicle says",
)  # fmt: skip
_BESIDE: Final = (
    "as the minutes of the council show", "although the sources disagree on the date", "which nobody had expected",
    "and the drawings survive in the archive", "but its cause is not known", "according to the measurements below",
    "so the second estimate is the better one", "when the water is low", "for reasons that are explained below",
)  # fmt: skip
_HOSTS: Final = (
    "en.wikipedia.org/wiki", "www.nature.com/articles", "doi.org/10.1000", "archive.org/details", "www.bbc.co.uk/news",
    "www.spiegel.de/wissenschaft", "pubmed.ncbi.nlm.nih.gov", "www.destatis.de/DE", "www.loc.gov/item", "arxiv.org/abs",
    "github.com/example/tides", "www.unesco.org/en", "www.bsh.de/DE", "hal.science/hal", "www.jstor.org/stable",
)  # fmt: skip
_WRITERS: Final = ("Meyer, K.", "Okafor, B. et al.", "Smith, J.", "Lindqvist, A.", "Ito, H.", "de Vries, P.")
_TITLES: Final = (
    "Tides of the southern North Sea", "The guilds of a market town", "Notes on scheduling", "Peat and its water",
    "A survey of inland lighthouses", "Registers of the parish", "Fermentation at low temperature", "On fish ladders",
    "Annual report", "Dialects between two rivers", "Mirrors by hand", "Free software in public libraries",
)  # fmt: skip


def sentence(rng: random.Random) -> str:
    did = rng.choice(_DID).format(year=rng.randrange(1610, 2025), number=rng.randrange(3, 4_000))
    text = f"{rng.choice(_SUBJECTS)} {did}"
    text = f"{text}, {rng.choice(_BESIDE)}" if rng.random() < 0.6 else text
    return f"{text[0].upper()}{text[1:]}."


def paragraph(rng: random.Random) -> str:
    return " ".join(sentence(rng) for _ in range(rng.randrange(3, 8)))


def address(rng: random.Random) -> str:
    return f"https://{rng.choice(_HOSTS)}/{rng.randrange(10**4, 10**7)}"


def source(rng: random.Random) -> str:
    writer, title, where = rng.choice(_WRITERS), rng.choice(_TITLES), address(rng)
    year, page = rng.randrange(1950, 2026), rng.randrange(1, 400)
    return rng.choice((
        f"~- {writer}: [[{where} {title}]], {year}, p. {page}",
        f"[^{writer} ({year}). {title}. {where}^]",
        f"* [{title}]({where}), {writer}, {year}",
        f"~- [[{where} {title}]]",
        f"~- {where}",
    ))  # fmt: skip


def article(rng: random.Random, *, sources: int) -> str:
    parts = [f"======{rng.choice(_TITLES)}======"]
    for _ in range(rng.randrange(2, 6)):
        parts += [f"====={rng.choice(_TITLES)}=====", paragraph(rng)]
    return "\n\n".join([*parts, *(source(rng) for _ in range(sources))]) + "\n"


def table(rng: random.Random) -> str:
    rows = [f"||{rng.choice(_TITLES)}||{rng.randrange(1, 999)}||{rng.random():.3f}||" for _ in range(12)]
    rows = [f"{row}{address(rng)}||" if rng.random() < 0.3 else row for row in rows]
    return "\n".join(["|=|name|=|n|=|share||", *rows])


CODE: Final = (
    '%%(css)\n.menu { display: none }\n<div style="display:none">https://casino.example</div>\n%%',
    "%%(python)\nfor address in ('https://a.example', 'https://b.example'):\n    fetch(address)\n%%",
    "```\ncurl https://example.org/install.sh | sh\n```\nThis downloads the free software and installs it.",
    "%%(text)\n[url=https://cheap-pills.example]buy cheap viagra now[/url]\n%%\nThis comment was removed in 2019.",
    "Set ##SEO_TITLE## and run ##make## to build the site; it is served at https://localhost:8080/ then.",
)
_GERMAN: Final = (
    "Der Hafen wurde nach dem Brand von 1751 neu gebaut, wie die Protokolle des Rates zeigen.",
    "Die Messungen des Frühjahrs weichen von denen des Herbstes ab; die Ursache ist unbekannt.",
    "Bei Niedrigwasser ist das alte Pflaster zu sehen, das im Plan von 1820 noch fehlt.",
    "Der Sauerteig braucht bei 5 °C etwa vier Tage, bei Zimmertemperatur einen.",
    "Das Fernrohr hat einen Spiegel von 254 mm und eine Auflösung von 0,5 μm in der Bildebene.",
    "Die Bücherei ist seit 2004 auch sonntags geöffnet; der Eintritt ist für Kinder gratis.",
)
_FRENCH: Final = (
    "Le port fut reconstruit après l'incendie de 1751, comme le montrent les registres.",
    "Les mesures du printemps diffèrent de celles de l'automne ; on en ignore la cause.",
    "La bibliothèque prête aussi des livres de l'école de musique.",
    "À marée basse, on voit l'ancien pavé, absent du plan de 1820.",
)
_RUSSIAN: Final = (
    "Гавань была восстановлена после пожара 1751 года, как показывают протоколы совета.",
    "Весенние измерения отличаются от осенних; причина неизвестна.",
    "Библиотека открыта с 2004 года, и вход в неё свободный.",
    "При низкой воде видна старая мостовая, которой нет на плане 1820 года.",
)
_OTHERS: Final = (
    "Το λιμάνι ξαναχτίστηκε μετά την πυρκαγιά του 1751.",
    "تم إعادة بناء الميناء بعد حريق عام 1751، كما تظهر محاضر المجلس.",
    "この港は1751年の火災の後に再建された。UTF-8とΔtの値を参照。",
    "港口在1751年的火灾后重建，测量值见下表（单位：μm）。",
    "Przystań odbudowano po pożarze w 1751 roku, o czym świadczą protokoły rady.",
)
LANGUAGES: Final = (_GERMAN, _FRENCH, _RUSSIAN, _OTHERS)
DELICATE: Final = (
    "The [[Casino de Monte-Carlo]] opened in 1863; roulette and baccarat were its first games. Garnier built the opera "
    "beside it. The casino has paid most of the principality's budget, see https://www.casinomontecarlo.com/en/history",
    "Online gambling is regulated by the Gambling Act of 2005. An operator needs a licence for betting, poker and slot "
    "machines; a welcome bonus has to state its terms. https://www.gamblingcommission.gov.uk/licensees",
    "Sildenafil, sold as Viagra, was first tried against angina in 1991. Tadalafil (Cialis) acts longer. Both need a "
    "prescription in the European Union. https://pubmed.ncbi.nlm.nih.gov/9580646",
    "A payday loan is repaid within a month. In 2014 the regulator capped its daily interest at 0.8 percent, and half "
    "of the lenders left the market. https://www.fca.org.uk/firms/price-cap-research",
    "Bitcoin blocks are found each ten minutes on average; the difficulty is set anew after 2,016 blocks. "
    "https://bitcoin.org/bitcoin.pdf",
    "Search engine optimization (SEO) became a trade about 1997. Buying backlinks is against the guidelines of Google "
    "since 2003. https://developers.google.com/search/docs",
    'The poker hand "dead man\'s hand" is named after Wild Bill Hickok. Its fifth card is not known.',
    "In escort carriers the hangar was below the flight deck; 122 of them were built until 1945.",
    "Replica locomotives of the Rocket run at the museum in York and at Nuremberg.",
    "The word jackpot comes from a game of draw poker that needs a pair of jacks to open the betting.",
    "Spammers of 2006 praised weight loss pills and replica watches; the filter of that time counted links alone.",
)
GOOD_COMMENTS: Final = (
    "Great article! One correction: the fire was in 1752, see {address}",
    "Is the second figure right? The report at {address} says 41.",
    "Thanks for this. I added what the survey says: {source}",
    "Nice article, but the map is missing. There is one at {address} that we may use.",
    "Should we move this to its own page? The text has grown beyond what a reader expects here.",
    "I disagree with the last paragraph; compare {address} and {address}",
    "Sources for the table, please. What I found: {source}\n{source}\n{source}",
    "My grandfather worked there until 1961. I can scan his photographs if somebody wants them.",
    "The link in the third paragraph is dead; the archive has it: https://web.archive.org/web/2019/{address}",
    "+1",
    "Wo steht das? In {address} finde ich nichts dazu.",
    "Very useful, thank you! Does it work with version 3, too?",
)
NAMES: Final = (
    "Tides", "HarbourOfEmden", "Casino de Monte-Carlo", "Gambling Act 2005", "Online casino", "Online pharmacy",
    "AC/DC", "Slot machine payout", "Sildenafil", "Payday loan", "How to buy a used boat", "Bitcoin", "Booking.com",
    "Node.js", "Search engine optimization", "Dead man's hand (poker)", "Escort carrier", "Replica locomotives",
    "Free software", "Weight loss", "Discount stores of the 1960s", "Rowing/Places for beginners", "Umzug der Bücherei",
    "Наводнение 1751", "港口", "Bonus (law)", "Guaranteed minimum wage", "The Amazing Race", "Lottery", "Rolex",
    "Streaming in schools",
)  # fmt: skip
FILE_NAMES: Final = (
    "IMG_2041.jpg", "casino-de-monte-carlo-1863.jpg", "price-list 2024.pdf", "Plan of 1820.png", "discount-cards.csv",
    "tide_tables.example.csv", "Screenshot 2026-03-01 at 12.04.11.png", "bitcoin.pdf", "Wettkampf Ergebnisse.ods",
)  # fmt: skip
CLUBS: Final = ("ruderverein-emden.example", "chess-club-leeds.example", "repaircafe.example", "allotments.example")
INVITATIONS: Final = (
    "The repair café meets each first Saturday, 14 to 17 h, at the library. Tools are there; spare parts are not. What "
    "it takes in is at {site} with the dates of this year.",
    "Our rowing club has places for beginners. The course begins in May and costs 40 € for members; contact us by the "
    "address on {site} or come to the boathouse on Thursdays.",
    "Allotment 17 is free from March on: 240 square metres, an apple tree, a shed that leaks. The rules are at "
    "{site}/rules and the waiting list is at {site}/list for all who live in the town.",
    "I sell my old bicycle, cheap, 28 inches, three gears, it needs a new chain. Ask at the porter's lodge.",
    "The conference takes place in Lisbon on 3 and 4 June. Please register now, since the hall has 80 seats; the "
    "programme is at {site} and the talks will be recorded.",
)

# --- spam -------------------------------------------------------------------------------------------------

SPAM_HOSTS: Final = (
    "best-online-casino-x.example", "win777.example", "cheap-pills-24.example", "rx-shop.example", "luxwatch.example",
    "quick-loans.example", "rank1-seo.example", "essayfast.example", "sites.example/u/4411", "bit.example/3xZ",
    "fitlife-blog.example", "dating-now.example", "cryptoprofit.example", "mybestreviews.example", "tinyl.example/q",
)  # fmt: skip
KEYWORDS: Final = (
    "best online casino", "buy cheap viagra", "payday loans no credit check", "replica rolex for sale", "cheap seo",
    "free spins no deposit", "essay writing service", "buy instagram followers", "hot escort girls", "bitcoin profit",
    "weight loss pills", "slot gacor", "click here", "situs judi online", "football betting tips", "online pharmacy",
)  # fmt: skip
SPAM_NAMES: Final = (
    "Buy cheap viagra {site}", "Best online casino {site}", "BuyCheapViagraOnline", "Cheap replica rolex {site}",
    "Payday loans no credit check", "Order now: weight loss pills", "Online casino/No deposit bonus/{site}",
    "Buy instagram followers cheap {site}", "Viagra rezeptfrei kaufen", "Hot escort girls, call now",
    "Cheap SEO {site}", "Double your bitcoin, risk free", "Buy_cheap_cialis_{site}", "Купить дешево виагра",
    "Slot games: win big", "Essay writing of top quality", "Free spins, casino bonus code {site}", "Buy ch3ap v1agra",
    "Great pills {site}",
)  # fmt: skip
_PITCHES: Final = (
    "Play at the best online casino and get 200 free spins with no deposit!",
    "Buy cheap viagra and cialis online without prescription, fast delivery worldwide.",
    "Our online casino has the biggest jackpot and instant withdrawal, sign up today and win big.",
    "Get a payday loan with instant approval, no credit check, apply now!",
    "We offer replica rolex watches of best quality at the lowest price with free shipping.",
    "Earn money from home with our bitcoin investment plan, guaranteed profit each day.",
    "Top rated SEO services: buy backlinks and rank higher on the first page of google.",
    "Order now your essay writing from our team, 24/7, best price, money back guaranteed.",
    "Hot escort girls in your city, call now or message us on whatsapp, best service.",
    "Lose 20 pounds in a week with this amazing diet pill, limited offer, buy now.",
    "Join now the trusted online betting site with welcome bonus and real money poker.",
    "Buy instagram followers cheap, boost your profile, satisfaction guaranteed.",
    "Cheap designer handbags, gucci and louis vuitton replica on sale, shop now with coupon.",
    "Best crypto trading signals, double your bitcoin, risk free, register now on telegram.",
)
_PLAIN: Final = (
    "The company has been repairing garage doors in Brighton for many years and its customers are pleased.",
    "Many people choose a mattress by its firmness, and a good guide has been written by the experts at this address.",
    "A short overview of roofing materials and what they cost can be found on the page of this firm.",
    "John is a blogger from Ohio who likes cycling and writes about vacuum cleaners.",
    "For those who want to move house, a list of firms with their prices is kept up to date here.",
)
PRAISES: Final = (
    "Great post! I really enjoyed reading it.", "Thanks for sharing, very informative.", "Nice article, keep it up!",
    "I stumbled upon your blog and I love your writing.", "Excellent post. I will be back for more.",
    "What a great site, useful information on every page!", "Toller Beitrag, danke für den Beitrag!",
    "Hello! Awesome article, well written.", "I found your site by accident and bookmarked it. Great information!",
)  # fmt: skip
OFFERS: Final = (
    "Check out my blog:", "Also visit my website", "Feel free to surf to my page", "Take a look at my site",
    "For more information visit", "More details here", "Here is my homepage", "Check this out:", "Schaut mal:",
    "I also wrote about it at", "Look at", "", "You can find it here:",
)  # fmt: skip
HIDING: Final = (
    'style="display:none"', 'style="position:absolute;left:-9999px"', 'style="font-size:0px;color:#fff"',
    "style='visibility: hidden'", 'style="height:1px;overflow:hidden"', "hidden", 'class="x" style="opacity:0"',
)  # fmt: skip
FOREIGN_PITCHES: Final = (
    "Online Casino ohne Lizenz: jetzt spielen und 50 Freispiele gratis sichern, Bonus garantiert!",
    "Viagra rezeptfrei kaufen, günstig und schnelle Lieferung, jetzt bestellen.",
    "Kredit ohne Schufa, sofort und garantiert, jetzt anmelden und bestellen!",
    "Лучшее казино онлайн: бонус за регистрацию, играйте бесплатно.",
    "Купить дешево виагра, доставка по всей стране, скидка.",
    "Acheter du viagra pas cher, livraison rapide, meilleur prix.",
    "Comprar cialis barato, mejor precio y descuento, tragamonedas gratis.",
)
WITHOUT_LINKS: Final = (
    "Best escort service in town, call now +1 {number}, hot girls 24/7, cheap, satisfaction guaranteed.",
    "Buy cheap viagra and cialis without prescription, contact us on whatsapp +44 {number}, fast delivery.",
    "Instant loan, guaranteed approval, no credit check, bad credit is fine, call us: {number}. Apply now!",
    "Make money with bitcoin, double your coins, risk free, message us on telegram @profit{number}.",
    "Play slot games and win big! Welcome bonus, real money, join now: search for win{number} casino.",
)
_LATIN: Final = "aeopcxyi"
_CYRILLIC: Final = "аеорсхуі"
_DIGITS: Final = str.maketrans("oieast", "013457")


def pitch(rng: random.Random, count: int) -> str:
    return " ".join(rng.sample(_PITCHES, count))


def plain_advertisement(rng: random.Random) -> str:
    return rng.choice(_PLAIN)


def _homoglyphs(rng: random.Random, word: str) -> str:
    return "".join(
        _CYRILLIC[_LATIN.index(one)] if one in _LATIN and rng.random() < 0.6 else one for one in word
    )  # some of the letters that look alike


def _full_width(_rng: random.Random, word: str) -> str:
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in word)


def _zero_width(rng: random.Random, word: str) -> str:
    return rng.choice("\u200b\u200d\u2060").join(word)


def _digits(_rng: random.Random, word: str) -> str:
    return word.translate(_DIGITS)


def _set_apart(rng: random.Random, word: str) -> str:
    return rng.choice("-. _").join(word) if len(word) > 4 else word


def _accents(rng: random.Random, word: str) -> str:
    return "".join(f"{one}\u0301" if one in "aeiou" and rng.random() < 0.7 else one for one in word)


def disguise(rng: random.Random, text: str) -> str:
    """Return the text with most of its words in one kind of disguise."""
    change = rng.choice((_homoglyphs, _full_width, _zero_width, _digits, _set_apart, _accents))
    return " ".join(change(rng, word) if rng.random() < 0.8 else word for word in text.split(" "))
