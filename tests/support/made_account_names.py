"""Names of accounts of our own making for the judge of antispam: those that people have, and those of sellers.

The good ones are of many languages, and many are meant to be hard: surnames and likings that are goods or praise, too.
The last of the bad ones have no word by which a program could know them.
"""

from __future__ import annotations

from typing import Final

GOOD_NAMES: Final = (
    "Ada Lovelace", "Grace_Hopper", "Björn Åkesson", "Jürgen Müller", "Søren Kierkegård", "Łukasz Wiśniewski",
    "Zoë Marsh", "François Lefèvre", "José García", "Ana María Núñez", "João da Silva", "Inês Gonçalves",
    "Giulia D'Angelo", "Niccolò Bianchi", "Eleni Papadopoulou", "Γιώργος Σεφέρης", "Иван Петров",
    "Ольга Кузнецова", "Наталья Бонусова", "Сергей Ставкин", "Олена Шевченко", "Ђорђе Марковић", "Петър Иванов",
    "Анна-Мария Скидкина", "田中太郎", "山田花子", "Tanaka Hiroshi", "Tani Akiko", "김민준", "이서연", "Seo Yeon",
    "Seo Min-jun", "Park Seo-joon", "王小明", "李娜", "Li Na", "陳大文", "محمد علي", "فاطمة الزهراء", "דוד כהן",
    "Noa Levi", "अमित शर्मा", "Priya Pillai", "Dr. Pillay", "S. Pillai", "นภา ศรีสุข", "Nguyễn Văn An",
    "Trần Thị Bình", "Mehmet Yılmaz", "Ayşe Öztürk", "Totò Riina", "Toto Cutugno", "Toto Wolff",
    "Aino Virtanen", "Väinö Mäkelä", "Jónas Hallgrímsson", "Kari Nordmann", "Siobhán Ní Bhriain",
    "Rhys ap Gruffydd", "Mairi MacInnes", "Aloha Kealoha", "Wanjiru Kamau", "Chinua Okafor", "Thabo Mokoena",
    "Tendai Moyo", "George Best", "Pete Best", "Anna Topp", "Topsy Turvy", "Lottie Price", "Vincent Price",
    "Katie Price", "Johnny Cash", "Rosanne Cash", "Winston Smith", "Winona Winters", "Freeman Dyson",
    "Morgan Freeman", "Freya Freestone", "Max Buyer", "Buyisile Nkosi", "Shopna Rahman", "Sally Shopkeeper",
    "Dealey Plaza", "Cheapside Walker", "Cheap Trick", "Bestmann Ole", "Bonus Bertrand", "Offermann",
    "Saleh Ahmed", "Lincoln Sales", "Gratia Plena", "Rabat Traveller", "Wette Frauke", "Thomas Wette",
    "Wetterfrosch", "Wettsteinplatz", "Kreditor Kafka", "Apotheker Benn", "Escorted Eddie", "Ambien Tales",
    "Valiumania", "PokerPete", "Poker Face", "Lady Gaga Poker", "Bingo Queen", "Bingo Long", "BingoWings",
    "SlotCarRacer", "Slotnik", "Slot Machine Collector", "CasinoRoyaleFan", "Casino Royale",
    "Bond in Monte Carlo", "Casinova", "Roulette Riding Hood", "Blackjack Pershing", "Baccarat Rose",
    "Jackpot Jack", "Lottery Winner", "Lottery Ticket 49", "Gambling Historian", "Betting Slip Collector",
    "Bookmaker's Daughter", "Togelius Jan", "Rolex Collector", "Gucci Mane", "Louis Vuittoni", "Air Jordan Fan",
    "RayBan Raymond", "Replica Locomotive Works", "Replicant Roy", "Bitcoin Ben", "BitcoinPizza", "CryptoKitty",
    "Cryptozoologist", "Crypto Nerd", "Forex Whitaker", "VPN Admin", "vpn-nerd", "Streaming Media Student",
    "Essayist Montaigne", "Essay Student 7", "Thesis Tamer", "Dissertation Dad", "Tablet Tom", "Pillbox Hat",
    "Pillsbury", "Pillow Fighter", "Steroid Chemist", "Asteroid B612", "Pharmacy Student", "PharmacyPhil",
    "Viagra Falls", "Cialisto", "Tramadollhouse", "Escort Mk2 Driver", "Ford Escort Owner",
    "HMS Escort Carrier", "Xxx", "xXx_BestSniper_xXx", "xXxDarkLordxXx", "XXL Unlimited", "Amazing Grace",
    "The Amazing Bingo Boy", "Incredible Hulk", "Telegram Operator 1912", "WhatsAppened", "Guaranteed Irish",
    "Hurry Potter", "Plumber Joe", "Joe the Plumber", "Locksmith of Leeds", "RoofingRon", "Mattress Mack",
    "Vacuum Cleaner Museum", "Moving Company B", "Antivirus Veteran", "Software Archaeologist",
    "Backlink Zelda", "SEO Sceptic", "Seoul Searching", "Seosamh Ó Néill", "Torrential Rain", "Shop Steward",
    "Bookshop Kid", "OnlineHistorian", "Online Ola", "Free Radical", "FreeBSD User", "Freebird", "Topology Tim",
    "Winner Takes It", "Money Penny", "Cashmere Cat", "Pricey Prism", "ServiceDog", "Agency of Fools",
    "ExpertEdith", "LinkinPark", "SiteSeer", "Portal Gunner", "Reviewer 2", "Discount Dracula",
    "Coupon Clipper", "IMG_2041", "R2-D2", "user4711", "B0b", "l33t_haxx0r", "4ndr3w", "n00b", "Mr. Hundred",
    "Dozent", "admin-hh", "KM-Bot",
)  # fmt: skip
BAD_NAMES: Final = (
    "best-casino-bonus", "cheapviagra", "CheapViagra", "cheap viagra", "Viagra Online", "viagraonline24",
    "buycialis", "buy-cialis-now", "BuyXanax", "xanaxforsale", "tramadol online", "TramadolWithoutPrescription",
    "cheap_pills_24", "pillsshop", "DietPillsReview", "weightlosspillsbest", "WeightLossOffer", "casinobonus",
    "CasinoBonus777", "casino-free-spins", "freespinscasino", "onlinecasino", "Online Casino 24",
    "bestonlinecasino", "BestOnlineSlots", "slotgacor", "slot gacor resmi", "SlotOnline88", "situsjudi",
    "Situs Judi Online", "judi online terpercaya", "togelonline", "pokeronline", "PokerOnlineMurah",
    "RealMoneyPoker", "blackjackwin", "roulettewinmoney", "jackpot-free", "sportsbookoffers", "bettingsites",
    "Betting Tips Site", "bookmakerbonus", "казино онлайн", "Казино Бонус", "ставкионлайн", "кредит онлайн",
    "Купить виагра", "Порно бесплатно", "paydayloansonline", "Payday Loans Service", "personalloan-offer",
    "CashAdvanceOnline", "creditrepairservice", "Credit Repair Agency", "debtreliefcompany",
    "sofortkredit-anbieter", "Kredit sofort", "SofortkreditGünstig", "viagrakaufen", "Viagra rezeptfrei",
    "potenzmittelbestellen", "forexbroker", "Forex Signals Provider", "cryptoprofit", "CryptoMoneyNow",
    "bitcoin-generator", "BitcoinProfitOfficial", "binaryoptionsbroker", "escortservice",
    "Escort Service Dubai", "escortagency", "pornsite", "freeporn", "FreePornOnline", "sexcamsite",
    "adultdatingsite", "webcamgirlsfree", "replicawatchshop", "ReplicaWatchesStore", "rolexforsale",
    "cheap-rolex", "guccioutlet sale", "GucciSale", "cheapuggboots", "nfljerseyscheap", "seoservice",
    "SEO Agency", "seoexpert", "BestSEOCompany", "cheap backlinks", "buybacklinks", "linkbuildingservice",
    "guestpostservice", "webtrafficcheap", "buyinstagramfollowers", "instagramfollowersfree",
    "essaywritingservice", "Essay Writing Service", "assignmenthelponline", "termpaperbuy", "fakediplomashop",
    "freerobux", "giftcardgenerator", "IPTV Provider", "bestiptv", "cheapvpn", "windowskeyshop",
    "plumberservice", "roofingcompany", "LocksmithNearMe", "movingcompanybest", "carpetcleaningservice",
    "ch3apv1agra", "c-a-s-i-n-o bonus", "viagra.com", "casino-777.net", "SeoWizard", "Dubai Call Girls",
    "JohnSmithPlumbing", "Kingw88", "Judi88", "Rajabandot",
)  # fmt: skip
