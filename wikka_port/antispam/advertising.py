"""(pure) The wiki's own list of advertising: what spam sells, how it praises it, and how it greets.

A single entry proves nothing: an article on Monte Carlo has casinos in it, and a person writes "great article".  So the
judge counts different entries of several lists, beside a link, and compares their number with the length of the text.

    TOPICS      goods that are advertised in wikis: articles have these words, too
    PITCHES     what a seller says, and an article seldom does
    FLATTERY    what a comment says that fits every page
    OFFERS      how such a comment leads to its site
    SELLERS     what stands beside goods in the name of a shop's account, and seldom in a person's
    AMBIGUOUS   goods, and praise, that persons have in their names, too
    PERSONS     what a person's name has beside a thing that its owner likes

English, German, and a few words of French, Spanish and Russian.  A site adds its own words in its settings.
"""

from __future__ import annotations

from typing import Final

from wikka_port.antispam.additions import Terms


def _terms(*lines: str) -> Terms:
    return Terms(entry for line in lines for entry in line.split(","))


TOPICS: Final = _terms(
    "casino, slot, slot machine, jackpot, roulette, poker, blackjack, baccarat, betting, gambling, sportsbook",
    "bookmaker, bingo, lottery, wetten, wette, glücksspiel, spielautomat, казино, ставки, рулетка, apuestas",
    "tragamonedas, situs judi, judi online, slot gacor, toto, togel",
    "viagra, cialis, levitra, kamagra, sildenafil, tadalafil, xanax, valium, tramadol, oxycontin, ambien, phentermine",
    "pill, tablet, steroid, cbd oil, weight loss, diet pill, potenzmittel, abnehmen, pharmacy, apotheke, виагра",
    "payday loan, personal loan, cash advance, credit repair, bad credit, debt relief, kredit, sofortkredit, credito",
    "forex, crypto, bitcoin, binary option, trading signal, passive income, investment plan, kryptowährung, кредит",
    "escort, porn, xxx, sex cam, adult dating, hookup, webcam girl, erotik, seitensprung, секс, порно",
    "replica watch, replica, rolex, louis vuitton, gucci, designer handbag, ray ban, air jordan, ugg boot, nfl jersey",
    "seo, backlink, link building, search engine optimization, web traffic, guest post, instagram follower",
    "essay writing, term paper, dissertation writing, assignment help, fake diploma, driving licence",
    "youtube view, essay, streaming, iptv, vpn, antivirus, software key, windows key, office key, game hack",
    "free robux, gift card",
    "mattress, vacuum cleaner, air fryer, garage door, roofing, plumber, locksmith, carpet cleaning, moving company",
)
PITCHES: Final = _terms(
    "situs, gacor, daftar",
    "buy, buy now, buy cheap, buy online, order now, order online, order today, shop now, get yours, purchase online",
    "cheap, cheapest, lowest price, best price, great price, unbeatable, discount, on sale, free shipping, coupon",
    "promo code, bonus code, promotional code, special offer, limited offer, limited time, exclusive offer, best deal",
    "click here, click now, sign up, join now, register now, play now, start now, apply now, download now, call now",
    "call us, contact us, whatsapp, telegram, message us, visit us, visit our, our website, our store, our shop",
    "our service, our team, our company, we offer, we provide, learn more at, find out more at, read more at",
    "best online, top online, trusted online, online store, online shop, online casino, online pharmacy, free online",
    "no deposit, free spin, welcome bonus, bonus, win big, big win, huge win, real money, instant withdrawal, payout",
    "no prescription, without prescription, without a prescription, overnight delivery, fast delivery, same day",
    "instant approval, no credit check, guaranteed approval, guaranteed, risk free, 100 free, 100 satisfaction",
    "money back, satisfaction guaranteed, 24 7, best quality, high quality, top quality, number one, no 1, top rated",
    "make money, earn money, earn up to, extra income, from home, double your, financial freedom, secret method",
    "best site, best website, best place, best casino, best service, top 10, must have, hurry, don't miss, act now",
    "rank higher, first page of google, boost your, increase your, grow your, unlimited, amazing, incredible",
    "kaufen, bestellen, jetzt kaufen, jetzt bestellen, jetzt spielen, günstig, billig, rezeptfrei",
    "ohne rezept, ohne schufa, ohne lizenz, gratis, rabatt, gutschein, sonderangebot, jetzt anmelden, bester preis",
    "schnelle lieferung, garantiert",
    "acheter, pas cher, meilleur prix, livraison, comprar, barato, descuento, mejor precio, oferta",
    "купить, дешево, заказать, недорого, скидка, бесплатно, доставка, онлайн, бонус",
)
FLATTERY: Final = _terms(
    "great post, nice post, good post, great article, nice article, great blog, nice blog, great site, nice site",
    "great information, useful information, valuable information, very informative, very useful, well written",
    "thanks for sharing, thank you for sharing, thanks for this, keep up the good work, keep it up, i love your",
    "i like your, i really enjoyed, i enjoyed reading, awesome post, awesome article, interesting post, helpful post",
    "i bookmarked, i will bookmark, i will be back, came across your, stumbled upon your, found your blog",
    "found your site, excellent post, superb post, fantastic post, what a great, toller beitrag, super seite",
    "schöne seite, guter artikel, danke für den beitrag, weiter so, отличная статья, спасибо за",
)
OFFERS: Final = _terms(
    "my site, my website, my blog, my page, my homepage, my web site, my web page, my channel, my profile, my store",
    "visit my, check out my, check my, take a look at my, feel free to visit, feel free to surf, also visit",
    "see also my",
    "check out this, check this out, check out, visit here, visit this, visit the, look at this site, have a look at",
    "more info here, more information here, more details here, for more details, for more information visit",
    "here is my, stop by my, surf to my, click here, read more here, you can find it here, get it here, try this",
    "i also wrote, i recommend, i found this, meine seite, meine webseite, meine homepage, schaut mal, besucht",
    "hier klicken, mehr infos hier, мой сайт, смотрите",
)
SELLERS: Final = _terms(
    "best, top, cheap, buy, sale, deal, shop, store, outlet, online, free, win, order, promo, price, offer",
    "cash, money, profit, official, review, service, agency, company, expert, provider, supplier, broker",
    "generator, rental, for rent, for sale, for hire, near me, link, site, website, portal, for you",
    "kaufen, angebot, preis, laden, anbieter, vermittlung, sofort, seriös, tienda, compra, gratis, achat, boutique",
    "offerta, vendita, prezzo, tani, tanio, sklep, ucuz, satın al, murah, terpercaya, resmi, магазин, купить, цена",
)
PRAISE_OF_SELLERS: Final = PITCHES | SELLERS
AMBIGUOUS: Final = _terms("xxx, toto, amazing, incredible, unlimited, guaranteed, telegram, whatsapp, hurry")
PERSONS: Final = _terms(
    "fan, player, lover, collector, nerd, geek, king, queen, boy, man, lady, guy, addict, driver, student, teacher",
    "dad, mom, mum, hunter, freund, spieler, sammler, fahrer, joueur, jugador, игрок",
)
