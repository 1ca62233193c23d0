"""(pure) The names of months, days and variables of the time in English and the languages of ``mediawiki_words``.

    month     January to December, as a title has them
    of        the same behind the number of a day, if they differ there
    short     their short forms, if they differ
    day       Sunday to Saturday
    weekday   their short forms, if they differ

The names are those of MediaWiki's own language files.  "_" stands for a blank.

Knows nothing of times.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from wikka_port.markup.mediawiki_words import main_language, row_of

_ROWS: Final[Mapping[str, str]] = {
    "en": """
        month January February March April May June July August September October November December; short Jan Feb Mar
        Apr May Jun Jul Aug Sep Oct Nov Dec; day Sunday Monday Tuesday Wednesday Thursday Friday Saturday; weekday Sun
        Mon Tue Wed Thu Fri Sat
    """,
    "de": """
        month Januar Februar März April Mai Juni Juli August September Oktober November Dezember; short Jan. Feb. Mär.
        Apr. Mai Jun. Jul. Aug. Sep. Okt. Nov. Dez.; day Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag;
        weekday So Mo Di Mi Do Fr Sa
    """,
    "fr": """
        month janvier février mars avril mai juin juillet août septembre octobre novembre décembre; short janv. fév.
        mars avr. mai juin juill. août sept. oct. nov. déc.; day dimanche lundi mardi mercredi jeudi vendredi samedi;
        weekday dim. lun. mar. mer. jeu. ven. sam.
    """,
    "es": """
        month enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre; short ene feb
        mar abr may jun jul ago sep oct nov dic; day domingo lunes martes miércoles jueves viernes sábado; weekday dom
        lun mar mié jue vie sáb
    """,
    "pt": """
        month janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro; short jan.
        fev. mar. abr. mai. jun. jul. ago. set. out. nov. dez.; day domingo segunda-feira terça-feira quarta-feira
        quinta-feira sexta-feira sábado; weekday dom seg ter qua qui sex sáb
    """,
    "it": """
        month gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre; short gen
        feb mar apr mag giu lug ago set ott nov dic; day domenica lunedì martedì mercoledì giovedì venerdì sabato;
        weekday dom lun mar mer gio ven sab
    """,
    "nl": """
        month januari februari maart april mei juni juli augustus september oktober november december; short jan feb
        mrt apr mei jun jul aug sep okt nov dec; day zondag maandag dinsdag woensdag donderdag vrijdag zaterdag;
        weekday zo ma di wo do vr za
    """,
    "pl": """
        month styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień; of
        stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia; short sty
        lut mar kwi maj cze lip sie wrz paź lis gru; day niedziela poniedziałek wtorek środa czwartek piątek sobota;
        weekday Nd Pn Wt Śr Cz Pt So
    """,
    "sv": """
        month januari februari mars april maj juni juli augusti september oktober november december; short jan feb mar
        apr maj jun jul aug sep okt nov dec; day söndag måndag tisdag onsdag torsdag fredag lördag; weekday sön mån
        tis ons tor fre lör
    """,
    "cs": """
        month leden únor březen duben květen červen červenec srpen září říjen listopad prosinec; of ledna února března
        dubna května června července srpna září října listopadu prosince; short 1. 2. 3. 4. 5. 6. 7. 8. 9. 10. 11.
        12.; day neděle pondělí úterý středa čtvrtek pátek sobota; weekday ne po út st čt pá so
    """,
    "tr": """
        month Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık; short Oca Şub Mar Nis May
        Haz Tem Ağu Eyl Eki Kas Ara; day Pazar Pazartesi Salı Çarşamba Perşembe Cuma Cumartesi; weekday Paz Pzt Sal
        Çrş Prş Cum Cts
    """,
    "vi": """
        month tháng_1 tháng_2 tháng_3 tháng_4 tháng_5 tháng_6 tháng_7 tháng_8 tháng_9 tháng_10 tháng_11 tháng_12; of
        tháng_Một tháng_Hai tháng_Ba tháng_Tư tháng_Năm tháng_Sáu tháng_Bảy tháng_Tám tháng_Chín tháng_Mười
        tháng_Mười_một tháng_Mười_hai; day Chủ_nhật Thứ_hai Thứ_ba Thứ_tư Thứ_năm Thứ_sáu Thứ_bảy; weekday Chủ_nhật
        Thứ_2 Thứ_3 Thứ_4 Thứ_5 Thứ_6 Thứ_7
    """,
    "id": """
        month Januari Februari Maret April Mei Juni Juli Agustus September Oktober November Desember; short Jan Feb
        Mar Apr Mei Jun Jul Ags Sep Okt Nov Des; day Minggu Senin Selasa Rabu Kamis Jumat Sabtu; weekday Min Sen Sel
        Rab Kam Jum Sab
    """,
    "ru": """
        month январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь; of января февраля марта
        апреля мая июня июля августа сентября октября ноября декабря; short янв фев мар апр май июн июл авг сен окт
        ноя дек; day воскресенье понедельник вторник среда четверг пятница суббота; weekday вс пн вт ср чт пт сб
    """,
    "uk": """
        month січень лютий березень квітень травень червень липень серпень вересень жовтень листопад грудень; of січня
        лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня; short січ лют бер кві трав
        чер лип сер вер жов лис груд; day неділя понеділок вівторок середа четвер п'ятниця субота; weekday Нд Пн Вт Ср
        Чт Пт Сб
    """,
    "bg": """
        month януари февруари март април май юни юли август септември октомври ноември декември; short яну фев мар апр
        май юни юли авг сеп окт ное дек; day неделя понеделник вторник сряда четвъртък петък събота; weekday нд пн вт
        ср чт пт сб
    """,
    "ja": """
        month 1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月; day 日曜日 月曜日 火曜日 水曜日 木曜日 金曜日
        土曜日; weekday 日 月 火 水 木 金 土
    """,
    "ko": """
        month 1월 2월 3월 4월 5월 6월 7월 8월 9월 10월 11월 12월; short 1 2 3 4 5 6 7 8 9 10 11 12; day 일요일 월요일
        화요일 수요일 목요일 금요일 토요일; weekday 일 월 화 수 목 금 토
    """,
    "zh": """
        month 1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月; day 星期日 星期一 星期二 星期三 星期四 星期五
        星期六; weekday 日 一 二 三 四 五 六
    """,
    "ar": """
        month يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر; day الأحد الإثنين الثلاثاء
        الأربعاء الخميس الجمعة السبت; weekday أحد اثنين ثلاثاء أربعاء خميس جمعة سبت
    """,
    "fa": """
        month ژانویه فوریه مارس آوریل مه ژوئن ژوئیه اوت سپتامبر اکتبر نوامبر دسامبر; of ژانویهٔ فوریهٔ مارس آوریل مهٔ
        ژوئن ژوئیهٔ اوت سپتامبر اکتبر نوامبر دسامبر; day یکشنبه دوشنبه سه‌شنبه چهارشنبه پنجشنبه جمعه شنبه
    """,
    "he": """
        month ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר; of בינואר בפברואר במרץ באפריל
        במאי ביוני ביולי באוגוסט בספטמבר באוקטובר בנובמבר בדצמבר; short ינו' פבר' מרץ אפר' מאי יוני יולי אוג' ספט'
        אוק' נוב' דצמ'; day ראשון שני שלישי רביעי חמישי שישי שבת; weekday א' ב' ג' ד' ה' ו' ש'
    """,
}
# The names of variables behind the English ones, as in ``mediawiki_names``.
TIME_NAMES: Final[Mapping[str, str]] = {
    "de": """
        CURRENTMONTH JETZIGER_MONAT JETZIGER_MONAT_2; CURRENTMONTH1 JETZIGER_MONAT_1; CURRENTMONTHNAME
        JETZIGER_MONATSNAME; CURRENTMONTHNAMEGEN JETZIGER_MONATSNAME_GENITIV JETZIGER_MONATSNAME_GEN;
        CURRENTMONTHABBREV JETZIGER_MONATSNAME_KURZ; CURRENTDAY JETZIGER_KALENDERTAG JETZIGER_TAG; CURRENTDAY2
        JETZIGER_KALENDERTAG_2 JETZIGER_TAG_2; CURRENTDAYNAME JETZIGER_WOCHENTAG; CURRENTYEAR JETZIGES_JAHR;
        CURRENTTIME JETZIGE_UHRZEIT; CURRENTHOUR JETZIGE_STUNDE; LOCALMONTH LOKALER_MONAT LOKALER_MONAT_2; LOCALMONTH1
        LOKALER_MONAT_1; LOCALMONTHNAME LOKALER_MONATSNAME; LOCALMONTHNAMEGEN LOKALER_MONATSNAME_GENITIV
        LOKALER_MONATSNAME_GEN; LOCALMONTHABBREV LOKALER_MONATSNAME_KURZ; LOCALDAY LOKALER_KALENDERTAG LOKALER_TAG;
        LOCALDAY2 LOKALER_KALENDERTAG_2 LOKALER_TAG_2; LOCALDAYNAME LOKALER_WOCHENTAG; LOCALYEAR LOKALES_JAHR;
        LOCALTIME LOKALE_UHRZEIT; LOCALHOUR LOKALE_STUNDE; CURRENTWEEK JETZIGE_KALENDERWOCHE JETZIGE_WOCHE; CURRENTDOW
        JETZIGER_WOCHENTAG_ZAHL; LOCALWEEK LOKALE_KALENDERWOCHE LOKALE_WOCHE; LOCALDOW LOKALER_WOCHENTAG_ZAHL;
        REVISIONDAY REVISIONSTAG VERSIONSTAG; REVISIONDAY2 REVISIONSTAG2 VERSIONSTAG2; REVISIONMONTH REVISIONSMONAT
        VERSIONSMONAT; REVISIONMONTH1 REVISIONSMONAT1 VERSIONSMONAT1; REVISIONYEAR REVISIONSJAHR VERSIONSJAHR;
        REVISIONTIMESTAMP REVISIONSZEITSTEMPEL VERSIONSZEITSTEMPEL; CURRENTTIMESTAMP JETZIGER_ZEITSTEMPEL;
        LOCALTIMESTAMP LOKALER_ZEITSTEMPEL
    """,
    "fr": """
        CURRENTMONTH MOISACTUEL MOIS2ACTUEL; CURRENTMONTH1 MOIS1ACTUEL; CURRENTMONTHNAME NOMMOISACTUEL;
        CURRENTMONTHNAMEGEN NOMGENMOISACTUEL; CURRENTMONTHABBREV ABREVMOISACTUEL; CURRENTDAY JOURACTUEL JOUR1ACTUEL;
        CURRENTDAY2 JOUR2ACTUEL; CURRENTDAYNAME NOMJOURACTUEL; CURRENTYEAR ANNEEACTUELLE; CURRENTTIME HORAIREACTUEL;
        CURRENTHOUR HEUREACTUELLE; LOCALMONTH MOISLOCAL MOIS2LOCAL; LOCALMONTH1 MOIS1LOCAL; LOCALMONTHNAME
        NOMMOISLOCAL; LOCALMONTHNAMEGEN NOMGENMOISLOCAL; LOCALMONTHABBREV ABREVMOISLOCAL; LOCALDAY JOURLOCAL
        JOUR1LOCAL; LOCALDAY2 JOUR2LOCAL; LOCALDAYNAME NOMJOURLOCAL; LOCALYEAR ANNEELOCALE; LOCALTIME HORAIRELOCAL;
        LOCALHOUR HEURELOCALE; CURRENTWEEK SEMAINEACTUELLE; CURRENTDOW JDSACTUEL; LOCALWEEK SEMAINELOCALE; LOCALDOW
        JDSLOCAL; REVISIONDAY JOURVERSION JOUR1VERSION; REVISIONDAY2 JOUR2VERSION; REVISIONMONTH MOISVERSION;
        REVISIONMONTH1 MOISVERSION1; REVISIONYEAR ANNEEVERSION; REVISIONTIMESTAMP INSTANTVERSION; CURRENTTIMESTAMP
        INSTANTACTUEL; LOCALTIMESTAMP INSTANTLOCAL
    """,
    "es": """
        CURRENTMONTH MESACTUAL MESACTUAL2; CURRENTMONTH1 MESACTUAL1; CURRENTMONTHNAME MESACTUALCOMPLETO
        NOMBREMESACTUAL; CURRENTMONTHNAMEGEN MESACTUALGENITIVO; CURRENTMONTHABBREV MESACTUALABREVIADO; CURRENTDAY
        DÍAACTUAL DIAACTUAL DÍA_ACTUAL DIA_ACTUAL; CURRENTDAY2 DÍAACTUAL2 DIAACTUAL2 DÍA_ACTUAL2 DIA_ACTUAL2;
        CURRENTDAYNAME NOMBREDÍAACTUAL NOMBREDIAACTUAL; CURRENTYEAR AÑOACTUAL AÑO_ACTUAL; CURRENTTIME
        HORA_MINUTOS_ACTUAL HORAMINUTOSACTUAL TIEMPOACTUAL; CURRENTHOUR HORAACTUAL HORA_ACTUAL; LOCALMONTH MESLOCAL
        MESLOCAL2; LOCALMONTH1 MESLOCAL1; LOCALMONTHNAME MESLOCALCOMPLETO NOMBREMESLOCAL; LOCALMONTHNAMEGEN
        MESLOCALGENITIVO; LOCALMONTHABBREV MESLOCALABREVIADO; LOCALDAY DÍALOCAL DIALOCAL; LOCALDAY2 DIALOCAL2
        DÍALOCAL2; LOCALDAYNAME NOMBREDIALOCAL NOMBREDÍALOCAL; LOCALYEAR AÑOLOCAL; LOCALTIME HORAMINUTOSLOCAL
        TIEMPOLOCAL; LOCALHOUR HORALOCAL; CURRENTWEEK SEMANAACTUAL; CURRENTDOW DDSACTUAL DIADESEMANAACTUAL
        DÍADESEMANAACTUAL; LOCALWEEK SEMANALOCAL; LOCALDOW DDSLOCAL DIADESEMANALOCAL DÍADESEMANALOCAL; REVISIONDAY
        DIADEREVISION DIAREVISION DÍADEREVISIÓN DÍAREVISIÓN; REVISIONDAY2 DIADEREVISION2 DIAREVISION2 DÍADEREVISIÓN2
        DÍAREVISIÓN2; REVISIONMONTH MESDEREVISION MESDEREVISIÓN MESREVISION MESREVISIÓN; REVISIONMONTH1 MESDEREVISION1
        MESDEREVISIÓN1 MESREVISION1 MESREVISIÓN1; REVISIONYEAR AÑODEREVISION AÑODEREVISIÓN AÑOREVISION AÑOREVISIÓN;
        REVISIONTIMESTAMP MARCADEHORADEREVISION MARCADEHORADEREVISIÓN; CURRENTTIMESTAMP MARCADEHORAACTUAL;
        LOCALTIMESTAMP MARCADEHORALOCAL
    """,
    "pt": """
        CURRENTMONTH MESATUAL MESATUAL2; CURRENTMONTH1 MESATUAL1; CURRENTMONTHNAME NOMEDOMESATUAL; CURRENTMONTHABBREV
        MESATUALABREV MESATUALABREVIADO ABREVIATURADOMESATUAL; CURRENTDAY DIAATUAL; CURRENTDAY2 DIAATUAL2;
        CURRENTDAYNAME NOMEDODIAATUAL; CURRENTYEAR ANOATUAL; CURRENTTIME HORARIOATUAL; CURRENTHOUR HORAATUAL;
        LOCALMONTH MESLOCAL; LOCALMONTH1 MESLOCAL1; LOCALMONTHNAME NOMEDOMESLOCAL; LOCALMONTHABBREV MESLOCALABREV
        MESLOCALABREVIADO ABREVIATURADOMESLOCAL; LOCALDAY DIALOCAL; LOCALDAY2 DIALOCAL2; LOCALDAYNAME NOMEDODIALOCAL;
        LOCALYEAR ANOLOCAL; LOCALTIME HORARIOLOCAL; LOCALHOUR HORALOCAL; CURRENTWEEK SEMANAATUAL; CURRENTDOW
        DIADASEMANAATUAL; LOCALWEEK SEMANALOCAL; LOCALDOW DIADASEMANALOCAL; REVISIONDAY DIADAREVISAO DIADAREVISÃO;
        REVISIONDAY2 DIADAREVISAO2 DIADAREVISÃO2; REVISIONMONTH MESDAREVISAO MÊSDAREVISÃO; REVISIONYEAR ANODAREVISAO
        ANODAREVISÃO
    """,
    "it": """
        CURRENTMONTH MESEATTUALE MESECORRENTE; CURRENTMONTHNAME NOMEMESEATTUALE NOMEMESECORRENTE; CURRENTMONTHNAMEGEN
        NOMEMESEATTUALEGEN NOMEMESECORRENTEGEN; CURRENTMONTHABBREV MESEATTUALEABBREV MESECORRENTEABBREV; CURRENTDAY
        GIORNOATTUALE GIORNOCORRENTE; CURRENTDAY2 GIORNOATTUALE2 GIORNOCORRENTE2; CURRENTDAYNAME NOMEGIORNOATTUALE
        NOMEGIORNOCORRENTE; CURRENTYEAR ANNOATTUALE ANNOCORRENTE; CURRENTTIME ORARIOATTUALE; CURRENTHOUR ORAATTUALE
        ORACORRENTE; LOCALMONTH MESELOCALE MESELOCALE2; LOCALMONTH1 MESELOCALE1; LOCALMONTHNAME NOMEMESELOCALE;
        LOCALMONTHNAMEGEN NOMEMESELOCALEGEN; LOCALMONTHABBREV MESELOCALEABBREV; LOCALDAY GIORNOLOCALE; LOCALDAY2
        GIORNOLOCALE2; LOCALDAYNAME NOMEGIORNOLOCALE; LOCALYEAR ANNOLOCALE; LOCALTIME ORARIOLOCALE; LOCALHOUR
        ORALOCALE; CURRENTWEEK SETTIMANACORRENTE; LOCALWEEK SETTIMANALOCALE
    """,
    "nl": """
        CURRENTMONTH HUIDIGEMAAND HUIDIGEMAAND2; CURRENTMONTH1 HUIDIGEMAAND1; CURRENTMONTHNAME HUIDIGEMAANDNAAM;
        CURRENTMONTHNAMEGEN HUIDIGEMAANDGEN; CURRENTMONTHABBREV HUIDIGEMAANDAFK; CURRENTDAY HUIDIGEDAG; CURRENTDAY2
        HUIDIGEDAG2; CURRENTDAYNAME HUIDIGEDAGNAAM; CURRENTYEAR HUIDIGJAAR; CURRENTTIME HUIDIGETIJD; CURRENTHOUR
        HUIDIGUUR; LOCALMONTH PLAATSELIJKEMAAND LOKALEMAAND LOKALEMAAND2; LOCALMONTH1 LOKALEMAAND1; LOCALMONTHNAME
        PLAATSELIJKEMAANDNAAM LOKALEMAANDNAAM; LOCALMONTHNAMEGEN PLAATSELIJKEMAANDNAAMGEN LOKALEMAANDNAAMGEN;
        LOCALMONTHABBREV PLAATSELIJKEMAANDAFK LOKALEMAANDAFK; LOCALDAY PLAATSELIJKEDAG LOKALEDAG; LOCALDAY2
        PLAATSELIJKEDAG2 LOKALEDAG2; LOCALDAYNAME PLAATSELIJKEDAGNAAM LOKALEDAGNAAM; LOCALYEAR PLAATSELIJKJAAR
        LOKAALJAAR; LOCALTIME PLAATSELIJKETIJD LOKALETIJD; LOCALHOUR PLAATSELIJKUUR LOKAALUUR; CURRENTWEEK
        HUIDIGEWEEK; CURRENTDOW HUIDIGEDVDW; LOCALWEEK PLAATSELIJKEWEEK LOKALEWEEK; LOCALDOW PLAATSELIJKEDVDW
        LOKALEDVDW; REVISIONDAY VERSIEDAG; REVISIONDAY2 VERSIEDAG2; REVISIONMONTH VERSIEMAAND; REVISIONMONTH1
        VERSIEMAAND1; REVISIONYEAR VERSIEJAAR; REVISIONTIMESTAMP VERSIETIJD; CURRENTTIMESTAMP HUIDIGETIJDSTEMPEL;
        LOCALTIMESTAMP PLAATSELIJKETIJDSTEMPEL LOKALETIJDSTEMPEL
    """,
    "pl": """
        CURRENTDAY AKTUALNYDZIEŃ; CURRENTDAYNAME NAZWADNIA; CURRENTYEAR AKTUALNYROK; CURRENTTIME AKTUALNYCZAS;
        CURRENTHOUR AKTUALNAGODZINA; LOCALMONTH MIESIĄC; LOCALMONTHNAME MIESIĄCNAZWA; LOCALMONTHNAMEGEN MIESIĄCNAZWAD;
        LOCALMONTHABBREV MIESIĄCNAZWASKR; LOCALDAY DZIEŃ; LOCALDAY2 DZIEŃ2; LOCALDAYNAME DZIEŃTYGODNIA; LOCALYEAR ROK;
        LOCALTIME CZAS; LOCALHOUR GODZINA; CURRENTWEEK AKTUALNYTYDZIEŃ; LOCALWEEK TYDZIEŃROKU; LOCALDOW
        DZIEŃTYGODNIANR
    """,
    "sv": """
        CURRENTMONTH NUVARANDEMÅNAD NUMÅNAD; CURRENTMONTH1 NUVARANDEMÅNAD1; CURRENTMONTHNAME NUVARANDEMÅNADSNAMN
        NUMÅNADSNAMN; CURRENTMONTHABBREV NUVARANDEMÅNADKORT NUMÅNADKORT; CURRENTDAY NUVARANDEDAG NUDAG; CURRENTDAY2
        NUVARANDEDAG2 NUDAG2; CURRENTDAYNAME NUVARANDEDAGSNAMN NUDAGSNAMN; CURRENTYEAR NUVARANDEÅR NUÅR; CURRENTTIME
        NUVARANDETID NUTID; CURRENTHOUR NUVARANDETIMME NUTIMME; LOCALMONTH LOKALMÅNAD; LOCALMONTH1 LOKALMÅNAD1;
        LOCALMONTHNAME LOKALMÅNADSNAMN; LOCALMONTHABBREV LOKALMÅNADKORT; LOCALDAY LOKALDAG; LOCALDAY2 LOKALDAG2;
        LOCALDAYNAME LOKALDAGSNAMN; LOCALYEAR LOKALTÅR; LOCALTIME LOKALTID; LOCALHOUR LOKALTIMME; CURRENTWEEK
        NUVARANDEVECKA NUVECKA; CURRENTDOW NUVARANDEVECKODAG; LOCALWEEK LOKALVECKA; LOCALDOW LOKALVECKODAG;
        REVISIONDAY REVISIONSDAG; REVISIONDAY2 REVISIONSDAG2; REVISIONMONTH REVISIONSMÅNAD; REVISIONYEAR REVISIONSÅR;
        REVISIONTIMESTAMP REVISIONSTIDSSTÄMPEL; CURRENTTIMESTAMP NUTIDSTÄMPEL; LOCALTIMESTAMP LOKALTIDSTÄMPEL
    """,
    "cs": """
        CURRENTMONTH AKTUÁLNÍMĚSÍC AKTUÁLNÍMĚSÍC2; CURRENTMONTH1 AKTUÁLNÍMĚSÍC1; CURRENTMONTHNAME AKTUÁLNÍMĚSÍCJMÉNO;
        CURRENTMONTHNAMEGEN AKTUÁLNÍMĚSÍCGEN; CURRENTMONTHABBREV AKTUÁLNÍMĚSÍCZKR; CURRENTDAY AKTUÁLNÍDEN; CURRENTDAY2
        AKTUÁLNÍDEN2; CURRENTDAYNAME AKTUÁLNÍDENJMÉNO; CURRENTYEAR AKTUÁLNÍROK; CURRENTTIME AKTUÁLNÍČAS; CURRENTHOUR
        AKTUÁLNÍHODINA; LOCALMONTH MÍSTNÍMĚSÍC MÍSTNÍMĚSÍC2; LOCALMONTH1 MÍSTNÍMĚSÍC1; LOCALMONTHNAME
        MÍSTNÍMĚSÍCJMÉNO; LOCALMONTHNAMEGEN MÍSTNÍMĚSÍCGEN; LOCALMONTHABBREV MÍSTNÍMĚSÍCZKR; LOCALDAY MÍSTNÍDEN;
        LOCALDAY2 MÍSTNÍDEN2; LOCALDAYNAME MÍSTNÍDENJMÉNO; LOCALYEAR MÍSTNÍROK; LOCALTIME MÍSTNÍČAS; LOCALHOUR
        MÍSTNÍHODINA; CURRENTWEEK AKTUÁLNÍTÝDEN; CURRENTDOW AKTUÁLNÍDENTÝDNE; LOCALWEEK MÍSTNÍTÝDEN; LOCALDOW
        MÍSTNÍDENTÝDNE; REVISIONDAY DENREVIZE; REVISIONDAY2 DENREVIZE2; REVISIONMONTH MĚSÍCREVIZE; REVISIONMONTH1
        MĚSÍCREVIZE1; REVISIONYEAR ROKREVIZE; REVISIONTIMESTAMP KÓDČASUREVIZE; CURRENTTIMESTAMP AKTUÁLNÍKÓDČASU;
        LOCALTIMESTAMP MÍSTNÍKÓDČASU
    """,
    "tr": """
        CURRENTMONTH MEVCUTAY MEVCUTAY2 GÜNCELAY GÜNCELAY2; CURRENTMONTH1 MEVCUTAY1 GÜNCELAY1; CURRENTMONTHNAME
        MEVCUTAYADI GÜNCELAYADI; CURRENTMONTHNAMEGEN MEVCUTAYADIİYELİK GÜNCELAYADIİYELİK; CURRENTMONTHABBREV
        MEVCUTAYKISALTMASI GÜNCELAYKISALTMASI; CURRENTDAY MEVCUTGÜN GÜNCELGÜN; CURRENTDAY2 MEVCUTGÜN2 GÜNCELGÜN2;
        CURRENTDAYNAME MEVCUTGÜNADI GÜNCELGÜNADI; CURRENTYEAR MEVCUTYIL GÜNCELYIL; CURRENTTIME MEVCUTZAMAN
        GÜNCELZAMAN; CURRENTHOUR MEVCUTSAAT GÜNCELSAAT; LOCALMONTH YERELAY YERELAY2; LOCALMONTH1 YERELAY1;
        LOCALMONTHNAME YERELAYADI; LOCALMONTHNAMEGEN YERELAYADIİYELİK; LOCALMONTHABBREV YERELAYKISALTMASI; LOCALDAY
        YERELGÜN; LOCALDAY2 YERELGÜN2; LOCALDAYNAME YERELGÜNADI; LOCALYEAR YERELYIL; LOCALTIME YERELZAMAN; LOCALHOUR
        YERELSAAT; CURRENTWEEK MEVCUTHAFTA GÜNCELHAFTA; CURRENTDOW MEVCUTHAFTANINGÜNÜ GÜNCELHAFTANINGÜNÜ; LOCALWEEK
        YERELHAFTA; LOCALDOW YERELHAFTANINGÜNÜ; REVISIONDAY SÜRÜMGÜNÜ; REVISIONDAY2 SÜRÜMGÜNÜ2; REVISIONMONTH
        SÜRÜMAYI; REVISIONMONTH1 SÜRÜMAYI1; REVISIONYEAR SÜRÜMYILI; REVISIONTIMESTAMP SÜRÜMZAMANBİLGİSİ;
        CURRENTTIMESTAMP MEVCUTZAMANBİLGİSİ GÜNCELZAMANBİLGİSİ; LOCALTIMESTAMP YERELZAMANBİLGİSİ
    """,
    "vi": """
        CURRENTMONTH THÁNG_NÀY THÁNGNÀY THÁNG_NÀY_2 THÁNGNÀY2; CURRENTMONTH1 THÁNG_NÀY_1 THÁNGNÀY1; CURRENTMONTHNAME
        TÊN_THÁNG_NÀY TÊNTHÁNGNÀY; CURRENTMONTHNAMEGEN TÊN_DÀI_THÁNG_NÀY TÊNDÀITHÁNGNÀY; CURRENTMONTHABBREV
        TÊN_NGẮN_THÁNG_NÀY TÊNNGẮNTHÁNGNÀY; CURRENTDAY NGÀY_NÀY NGÀYNÀY; CURRENTDAY2 NGÀY_NÀY_2 NGÀYNÀY2;
        CURRENTDAYNAME TÊN_NGÀY_NÀY TÊNNGÀYNÀY; CURRENTYEAR NĂM_NÀY NĂMNÀY; CURRENTTIME GIỜ_NÀY GIỜNÀY; CURRENTHOUR
        GIỜ_HIỆN_TẠI GIỜHIỆNTẠI; LOCALMONTH THÁNG_ĐỊA_PHƯƠNG THÁNGĐỊAPHƯƠNG; LOCALMONTH1 THÁNG_ĐỊA_PHƯƠNG_1
        THÁNGĐỊAPHƯƠNG1; LOCALMONTHNAME TÊN_THÁNG_ĐỊA_PHƯƠNG TÊNTHÁNGĐỊAPHƯƠNG; LOCALMONTHABBREV THÁNG_ĐỊA_PHƯƠNG_TẮT
        THÁNGĐỊAPHƯƠNGTẮT; LOCALDAY NGÀY_ĐỊA_PHƯƠNG NGÀYĐỊAPHƯƠNG; LOCALDAY2 NGÀY_ĐỊA_PHƯƠNG_2 NGÀYĐỊAPHƯƠNG2;
        LOCALDAYNAME TÊN_NGÀY_ĐỊA_PHƯƠNG TÊNNGÀYĐỊAPHƯƠNG; LOCALYEAR NĂM_ĐỊA_PHƯƠNG NĂMĐỊAPHƯƠNG; LOCALTIME
        THỜI_GIAN_ĐỊA_PHƯƠNG THỜIGIANĐỊAPHƯƠNG; LOCALHOUR GIỜ_ĐỊA_PHƯƠNG GIỜĐỊAPHƯƠNG; CURRENTWEEK TUẦN_NÀY TUẦNNÀY;
        LOCALWEEK TUẦN_ĐỊA_PHƯƠNG TUẦNĐỊAPHƯƠNG; REVISIONDAY NGÀY_BẢN NGÀYBẢN; REVISIONDAY2 NGÀY_BẢN_2 NGÀYBẢN2;
        REVISIONMONTH THÁNG_BẢN THÁNGBẢN; REVISIONMONTH1 THÁNG_BẢN_1 THÁNGBẢN1; REVISIONYEAR NĂM_BẢN NĂMBẢN;
        REVISIONTIMESTAMP MỐC_THỜI_GIAN_BẢN MỐCTHỜIGIANBẢN DẤU_THỜI_GIAN_BẢN DẤUTHỜIGIANBẢN; CURRENTTIMESTAMP
        MỐC_THỜI_GIAN_NÀY MỐCTHỜIGIANNÀY DẤU_THỜI_GIAN_NÀY DẤUTHỜIGIANNÀY; LOCALTIMESTAMP MỐC_THỜI_GIAN_ĐỊA_PHƯƠNG
        MỐCTHỜIGIANĐỊAPHƯƠNG DẤU_THỜI_GIAN_ĐỊA_PHƯƠNG DẤUTHỜIGIANĐỊAPHƯƠNG
    """,
    "id": """
        CURRENTMONTH BULANKINI BULANKINI2 BUKIN BUKIN2; CURRENTMONTH1 BULANKINI1 BUKIN1; CURRENTMONTHNAME
        NAMABULANKINI NAMBUKIN; CURRENTMONTHNAMEGEN NAMAJENDERBULANKINI NAMJENBUKIN; CURRENTMONTHABBREV
        NAMASINGKATBULANKINI BULANINISINGKAT NAMSINGBUKIN; CURRENTDAY HARIKINI HARKIN; CURRENTDAY2 HARIKINI2 HARKIN2;
        CURRENTDAYNAME NAMAHARIKINI NAMHARKIN; CURRENTYEAR TAHUNKINI TAKIN; CURRENTTIME WAKTUKINI WAKIN; CURRENTHOUR
        JAMKINI JAKIN; LOCALMONTH BULANLOKAL BULANLOKAL2 BULOK BULOK2; LOCALMONTH1 BULANLOKAL1 BULOK1; LOCALMONTHNAME
        NAMABULANLOKAL NAMBULOK; LOCALMONTHNAMEGEN NAMAJENDERBULANLOKAL NAMJENBULOK; LOCALMONTHABBREV
        NAMASINGKATBULANLOKAL NAMSINGBULOK; LOCALDAY HARILOKAL HALOK; LOCALDAY2 HARILOKAL2 HALOK2; LOCALDAYNAME
        NAMAHARILOKAL NAMHALOK; LOCALYEAR TAHUNLOKAL TALOK; LOCALTIME WAKTULOKAL WALOK; LOCALHOUR JAMLOKAL JALOK;
        CURRENTWEEK MINGGUKINI MIKIN; CURRENTDOW HARIDALAMMINGGU HADAMI; LOCALWEEK MINGGULOKAL MIKAL; LOCALDOW
        HARIDALAMMINGGULOKAL HADAMIKAL; REVISIONDAY HARIREVISI HAREV; REVISIONDAY2 HARIREVISI2 HAREV2; REVISIONMONTH
        BULANREVISI BUREV; REVISIONMONTH1 BULANREVISI1; REVISIONYEAR TAHUNREVISI TAREV; REVISIONTIMESTAMP
        STEMPELWAKTUREVISI REKAMWAKTUREVISI; CURRENTTIMESTAMP STEMPELWAKTUKINI STEMWAKIN; LOCALTIMESTAMP
        STEMPELWAKTULOKAL STEMWAKAL
    """,
    "ru": """
        CURRENTMONTH ТЕКУЩИЙ_МЕСЯЦ ТЕКУЩИЙ_МЕСЯЦ_2; CURRENTMONTH1 ТЕКУЩИЙ_МЕСЯЦ_1; CURRENTMONTHNAME
        НАЗВАНИЕ_ТЕКУЩЕГО_МЕСЯЦА; CURRENTMONTHNAMEGEN НАЗВАНИЕ_ТЕКУЩЕГО_МЕСЯЦА_РОД; CURRENTMONTHABBREV
        НАЗВАНИЕ_ТЕКУЩЕГО_МЕСЯЦА_АБР; CURRENTDAY ТЕКУЩИЙ_ДЕНЬ; CURRENTDAY2 ТЕКУЩИЙ_ДЕНЬ_2; CURRENTDAYNAME
        НАЗВАНИЕ_ТЕКУЩЕГО_ДНЯ; CURRENTYEAR ТЕКУЩИЙ_ГОД; CURRENTTIME ТЕКУЩЕЕ_ВРЕМЯ; CURRENTHOUR ТЕКУЩИЙ_ЧАС; LOCALMONTH
        МЕСТНЫЙ_МЕСЯЦ МЕСТНЫЙ_МЕСЯЦ_2; LOCALMONTH1 МЕСТНЫЙ_МЕСЯЦ_1; LOCALMONTHNAME НАЗВАНИЕ_МЕСТНОГО_МЕСЯЦА;
        LOCALMONTHNAMEGEN НАЗВАНИЕ_МЕСТНОГО_МЕСЯЦА_РОД; LOCALMONTHABBREV НАЗВАНИЕ_МЕСТНОГО_МЕСЯЦА_АБР; LOCALDAY
        МЕСТНЫЙ_ДЕНЬ; LOCALDAY2 МЕСТНЫЙ_ДЕНЬ_2; LOCALDAYNAME НАЗВАНИЕ_МЕСТНОГО_ДНЯ; LOCALYEAR МЕСТНЫЙ_ГОД; LOCALTIME
        МЕСТНОЕ_ВРЕМЯ; LOCALHOUR МЕСТНЫЙ_ЧАС; CURRENTWEEK ТЕКУЩАЯ_НЕДЕЛЯ; CURRENTDOW ТЕКУЩИЙ_ДЕНЬ_НЕДЕЛИ; LOCALWEEK
        МЕСТНАЯ_НЕДЕЛЯ; LOCALDOW МЕСТНЫЙ_ДЕНЬ_НЕДЕЛИ; REVISIONDAY ДЕНЬ_ВЕРСИИ; REVISIONDAY2 ДЕНЬ_ВЕРСИИ_2;
        REVISIONMONTH МЕСЯЦ_ВЕРСИИ; REVISIONMONTH1 МЕСЯЦ_ВЕРСИИ_1; REVISIONYEAR ГОД_ВЕРСИИ; REVISIONTIMESTAMP
        ОТМЕТКА_ВРЕМЕНИ_ВЕРСИИ; CURRENTTIMESTAMP ОТМЕТКА_ТЕКУЩЕГО_ВРЕМЕНИ; LOCALTIMESTAMP ОТМЕТКА_МЕСТНОГО_ВРЕМЕНИ
    """,
    "uk": """
        CURRENTMONTH ПОТОЧНИЙ_МІСЯЦЬ ПОТОЧНИЙ_МІСЯЦЬ_2 ТЕКУЩИЙ_МЕСЯЦ ТЕКУЩИЙ_МЕСЯЦ_2; CURRENTMONTH1 ПОТОЧНИЙ_МІСЯЦЬ_1
        ТЕКУЩИЙ_МЕСЯЦ_1; CURRENTMONTHNAME НАЗВА_ПОТОЧНОГО_МІСЯЦЯ НАЗВАНИЕ_ТЕКУЩЕГО_МЕСЯЦА; CURRENTMONTHNAMEGEN
        НАЗВА_ПОТОЧНОГО_МІСЯЦЯ_РОД НАЗВАНИЕ_ТЕКУЩЕГО_МЕСЯЦА_РОД; CURRENTMONTHABBREV НАЗВА_ПОТОЧНОГО_МІСЯЦЯ_АБР
        НАЗВАНИЕ_ТЕКУЩЕГО_МЕСЯЦА_АБР; CURRENTDAY ПОТОЧНИЙ_ДЕНЬ ТЕКУЩИЙ_ДЕНЬ; CURRENTDAY2 ПОТОЧНИЙ_ДЕНЬ_2
        ТЕКУЩИЙ_ДЕНЬ_2; CURRENTDAYNAME НАЗВА_ПОТОЧНОГО_ДНЯ НАЗВАНИЕ_ТЕКУЩЕГО_ДНЯ; CURRENTYEAR ПОТОЧНИЙ_РІК
        ТЕКУЩИЙ_ГОД; CURRENTTIME ПОТОЧНИЙ_ЧАС ТЕКУЩЕЕ_ВРЕМЯ; CURRENTHOUR ПОТОЧНА_ГОДИНА ТЕКУЩИЙ_ЧАС; LOCALMONTH
        ЛОКАЛЬНИЙ_МІСЯЦЬ ЛОКАЛЬНИЙ_МІСЯЦЬ_2 МЕСТНЫЙ_МЕСЯЦ МЕСТНЫЙ_МЕСЯЦ_2; LOCALMONTH1 ЛОКАЛЬНИЙ_МІСЯЦЬ_1
        МЕСТНЫЙ_МЕСЯЦ_1; LOCALMONTHNAME НАЗВА_ЛОКАЛЬНОГО_МІСЯЦЯ НАЗВАНИЕ_МЕСТНОГО_МЕСЯЦА; LOCALMONTHNAMEGEN
        НАЗВА_ЛОКАЛЬНОГО_МІСЯЦЯ_РОД НАЗВАНИЕ_МЕСТНОГО_МЕСЯЦА_РОД; LOCALMONTHABBREV НАЗВА_ЛОКАЛЬНОГО_МІСЯЦЯ_АБР
        НАЗВАНИЕ_МЕСТНОГО_МЕСЯЦА_АБР; LOCALDAY ЛОКАЛЬНИЙ_ДЕНЬ МІСЦЕВИЙ_ДЕНЬ МЕСТНЫЙ_ДЕНЬ; LOCALDAY2 ЛОКАЛЬНИЙ_ДЕНЬ_2
        МІСЦЕВИЙ_ДЕНЬ_2 МЕСТНЫЙ_ДЕНЬ_2; LOCALDAYNAME НАЗВА_ЛОКАЛЬНОГО_ДНЯ НАЗВА_МІСЦЕВОГО_ДНЯ НАЗВАНИЕ_МЕСТНОГО_ДНЯ;
        LOCALYEAR ЛОКАЛЬНИЙ_РІК МІСЦЕВИЙ_РІК МЕСТНЫЙ_ГОД; LOCALTIME ЛОКАЛЬНИЙ_ЧАС МІСЦЕВИЙ_ЧАС МЕСТНОЕ_ВРЕМЯ;
        LOCALHOUR ЛОКАЛЬНА_ГОДИНА МІСЦЕВА_ГОДИНА МЕСТНЫЙ_ЧАС; CURRENTWEEK ПОТОЧНИЙ_ТИЖДЕНЬ ТЕКУЩАЯ_НЕДЕЛЯ; CURRENTDOW
        ПОТОЧНИЙ_ДЕНЬ_ТИЖНЯ ТЕКУЩИЙ_ДЕНЬ_НЕДЕЛИ; LOCALWEEK ЛОКАЛЬНИЙ_ТИЖДЕНЬ МЕСТНАЯ_НЕДЕЛЯ; LOCALDOW
        ЛОКАЛЬНИЙ_ДЕНЬ_ТИЖНЯ МЕСТНЫЙ_ДЕНЬ_НЕДЕЛИ; REVISIONDAY ДЕНЬ_ВЕРСІЇ ДЕНЬ_ВЕРСИИ; REVISIONDAY2 ДЕНЬ_ВЕРСІЇ_2
        ДЕНЬ_ВЕРСИИ_2; REVISIONMONTH МІСЯЦЬ_ВЕРСІЇ МЕСЯЦ_ВЕРСИИ; REVISIONMONTH1 МІСЯЦЬ_ВЕРСІЇ_1 МЕСЯЦ_ВЕРСИИ_1;
        REVISIONYEAR РІК_ВЕРСІЇ ГОД_ВЕРСИИ; REVISIONTIMESTAMP МІТКА_ЧАСУ_ВЕРСІЇ ОТМЕТКА_ВРЕМЕНИ_ВЕРСИИ;
        CURRENTTIMESTAMP МІТКА_ПОТОЧНОГО_ЧАСУ ОТМЕТКА_ТЕКУЩЕГО_ВРЕМЕНИ; LOCALTIMESTAMP МІТКА_ЛОКАЛЬНОГО_ЧАСУ
        ОТМЕТКА_МЕСТНОГО_ВРЕМЕНИ
    """,
    "bg": """
        CURRENTMONTH ТЕКУЩМЕСЕЦ; CURRENTMONTH1 ТЕКУЩМЕСЕЦ1; CURRENTMONTHNAME ТЕКУЩМЕСЕЦИМЕ; CURRENTMONTHNAMEGEN
        ТЕКУЩМЕСЕЦИМЕРОД; CURRENTMONTHABBREV ТЕКУЩМЕСЕЦСЪКР; CURRENTDAY ТЕКУЩДЕН; CURRENTDAY2 ТЕКУЩДЕН2;
        CURRENTDAYNAME ТЕКУЩДЕНИМЕ; CURRENTYEAR ТЕКУЩАГОДИНА; CURRENTTIME ТЕКУЩОВРЕМЕ; CURRENTHOUR ТЕКУЩЧАС;
        CURRENTWEEK ТЕКУЩАСЕДМИЦА; CURRENTDOW ТЕКУЩ_ДЕН_ОТ_СЕДМИЦАТА; REVISIONDAY ДЕН_НА_ВЕРСИЯТА; REVISIONDAY2
        ДЕН_НА_ВЕРСИЯТА2; REVISIONMONTH МЕСЕЦ_НА_ВЕРСИЯТА; REVISIONYEAR ГОДИНА_НА_ВЕРСИЯТА
    """,
    "ja": """
        CURRENTMONTH 現在の月 協定月; CURRENTMONTH1 現在の月1 協定月1 協定月１; CURRENTMONTHNAME 現在の月名 協定月名;
        CURRENTMONTHNAMEGEN 現在の月属格; CURRENTMONTHABBREV 現在の月省略形 省略協定月 協定月省略 協定月省略形;
        CURRENTDAY 現在の日 協定日; CURRENTDAY2 現在の日2 協定日2 協定日２; CURRENTDAYNAME 現在の曜日名 協定曜日;
        CURRENTYEAR 現在の年 協定年; CURRENTTIME 現在の時刻 協定時間 協定時刻; CURRENTHOUR 現在の時 協定時; LOCALMONTH
        地方時の月 現地月; LOCALMONTH1 地方時の月1 現地月1 現地月１; LOCALMONTHNAME 地方時の月名1 現地月名;
        LOCALMONTHNAMEGEN 地方時の月属格; LOCALMONTHABBREV 地方時の月省略形 省略現地月; LOCALDAY 地方時の日 現地日
        ローカルデイ; LOCALDAY2 地方時の日2 現地日2 現地日２; LOCALDAYNAME 地方時の曜日名 現地曜日 ローカルデイネーム;
        LOCALYEAR 地方時の年 現地年 ローカルイヤー; LOCALTIME 地方時の時刻 現地時間 ローカルタイム; LOCALHOUR
        地方時の時 現地時; CURRENTWEEK 現在の週; CURRENTDOW 現在の曜日番号; LOCALWEEK 地方時の週 現地週
        ローカルウィーク; LOCALDOW 地方時の曜日番号; REVISIONDAY 版の日 リビジョン日 差分日; REVISIONDAY2 版の日2
        リビジョン日2 差分日2 リビジョン日２ 差分日２; REVISIONMONTH 版の月 リビジョン月 差分月; REVISIONMONTH1
        版の月1; REVISIONYEAR 版の年 リビジョン年 差分年; REVISIONTIMESTAMP 版のタイムスタンプ
        リビジョンタイムスタンプ; CURRENTTIMESTAMP 現在のタイムスタンプ 協定タイムスタンプ; LOCALTIMESTAMP
        地方時のタイムスタンプ 現地タイムスタンプ ローカルタイムスタンプ
    """,
    "ko": """
        CURRENTMONTH 현재월; CURRENTMONTH1 현재월1; CURRENTMONTHNAME 현재월이름; CURRENTMONTHNAMEGEN 현재월이름소유격;
        CURRENTMONTHABBREV 현재월이름약자; CURRENTDAY 현재일; CURRENTDAY2 현재일2; CURRENTDAYNAME 현재요일;
        CURRENTYEAR 현재년; CURRENTTIME 현재시각 현재시분; CURRENTHOUR 현재시; LOCALMONTH 지역월; LOCALMONTH1 지역월1;
        LOCALMONTHNAME 지역월이름; LOCALMONTHNAMEGEN 지역월이름소유격; LOCALMONTHABBREV 지역월이름약자; LOCALDAY
        지역일; LOCALDAY2 지역일2; LOCALDAYNAME 지역요일; LOCALYEAR 지역년; LOCALTIME 지역시분 지역시각; LOCALHOUR
        지역시; CURRENTWEEK 현재주; CURRENTDOW 현재요일숫자; LOCALWEEK 지역주; LOCALDOW 지역요일숫자; REVISIONDAY
        판일; REVISIONDAY2 판일2; REVISIONMONTH 판월; REVISIONMONTH1 판월1; REVISIONYEAR 판년; REVISIONTIMESTAMP
        판타임스탬프; CURRENTTIMESTAMP 현재타임스탬프; LOCALTIMESTAMP 지역타임스탬프
    """,
    "zh": """
        CURRENTMONTH 本月 本月2; CURRENTMONTH1 本月1; CURRENTMONTHNAME 本月名 本月名称; CURRENTMONTHNAMEGEN 本月名属格
        本月名称属格; CURRENTMONTHABBREV 本月简称 本月縮寫; CURRENTDAY 今天; CURRENTDAY2 今天2; CURRENTDAYNAME 星期
        今天名 今天名称; CURRENTYEAR 今年; CURRENTTIME 当前时间 此时 目前時間; CURRENTHOUR 当前小时; LOCALMONTH 本地月
        本地月2; LOCALMONTH1 本地月1; LOCALMONTHNAME 本地月份名; LOCALMONTHNAMEGEN 本地月历; LOCALMONTHABBREV
        本地月缩写; LOCALDAY 本地日; LOCALDAY2 本地日2; LOCALDAYNAME 本地日名; LOCALYEAR 本地年; LOCALTIME 本地时间;
        LOCALHOUR 本地小时; CURRENTWEEK 本周; CURRENTDOW 当前DOW; LOCALWEEK 本地周; LOCALDOW 本地DOW; REVISIONDAY
        修订日; REVISIONDAY2 修订日2; REVISIONMONTH 修订月; REVISIONMONTH1 修订月1; REVISIONYEAR 修订年;
        REVISIONTIMESTAMP 修订时间戳; CURRENTTIMESTAMP 当前时间戳; LOCALTIMESTAMP 本地时间戳
    """,
    "ar": """
        CURRENTMONTH شهر_حالي شهر_حالي2; CURRENTMONTH1 شهر_حالي1; CURRENTMONTHNAME اسم_الشهر_الحالي;
        CURRENTMONTHNAMEGEN اسم_الشهر_الحالي_المولد; CURRENTMONTHABBREV اختصار_الشهر_الحالي; CURRENTDAY يوم_حالي;
        CURRENTDAY2 يوم_حالي2; CURRENTDAYNAME اسم_اليوم_الحالي; CURRENTYEAR عام_حالي; CURRENTTIME وقت_حالي;
        CURRENTHOUR ساعة_حالية; LOCALMONTH شهر_محلي شهر_محلي2; LOCALMONTH1 شهر_محلي1; LOCALMONTHNAME اسم_الشهر_المحلي;
        LOCALMONTHNAMEGEN اسم_الشهر_المحلي_المولد; LOCALMONTHABBREV اختصار_الشهر_المحلي; LOCALDAY يوم_محلي; LOCALDAY2
        يوم_محلي2; LOCALDAYNAME اسم_اليوم_المحلي; LOCALYEAR عام_محلي; LOCALTIME وقت_محلي; LOCALHOUR ساعة_محلية;
        CURRENTWEEK أسبوع_حالي; CURRENTDOW يوم_حالي_مأ; LOCALWEEK أسبوع_محلي; LOCALDOW يوم_محلي_مأ; REVISIONDAY
        يوم_المراجعة; REVISIONDAY2 يوم_المراجعة2; REVISIONMONTH شهر_المراجعة; REVISIONMONTH1 شهر_المراجعة1;
        REVISIONYEAR عام_المراجعة; REVISIONTIMESTAMP طابع_وقت_المراجعة; CURRENTTIMESTAMP طابع_الوقت_الحالي;
        LOCALTIMESTAMP طابع_الوقت_المحلي
    """,
    "fa": """
        CURRENTMONTH ماه ماهکنونی ماه_کنونی ماهکنونی۲ ماه_کنونی۲; CURRENTMONTH1 ماه۱ ماهکنونی۱ ماه_کنونی۱;
        CURRENTMONTHNAME نامماه نام_ماه نامماهکنونی نام_ماه_کنونی; CURRENTMONTHNAMEGEN نامماهاضافه نام_ماه_اضافه
        نامماهکنونیاضافه نام_ماه_کنونی_اضافه; CURRENTMONTHABBREV مخففنامماه مخفف_نام_ماه; CURRENTDAY روز روزکنونی
        روز_کنونی; CURRENTDAY2 روز۲ روز_۲; CURRENTDAYNAME نامروز نام_روز; CURRENTYEAR سال سالکنونی سال_کنونی;
        CURRENTTIME زمانکنونی زمان_کنونی; CURRENTHOUR ساعت ساعتکنونی ساعت_کنونی; LOCALMONTH ماهمحلی ماه_محلی ماهمحلی۲
        ماه_محلی۲; LOCALMONTH1 ماهمحلی۱ ماه_محلی۱; LOCALMONTHNAME نامماهمحلی نام_ماه_محلی; LOCALMONTHNAMEGEN
        نامماهمحلیاضافه نام_ماه_محلی_اضافه; LOCALMONTHABBREV مخففماهمحلی مخفف_ماه_محلی; LOCALDAY روزمحلی روز_محلی;
        LOCALDAY2 روزمحلی۲ روز_محلی_۲; LOCALDAYNAME نامروزمحلی نام_روز_محلی; LOCALYEAR سالمحلی سال_محلی; LOCALTIME
        زمانمحلی زمان_محلی; LOCALHOUR ساعتمحلی ساعت_محلی; CURRENTWEEK هفته; CURRENTDOW روزهفته روز_هفته; LOCALWEEK
        هفتهمحلی هفته_محلی; LOCALDOW روزهفتهمحلی روز_هفته_محلی; REVISIONDAY روزنسخه روز_نسخه; REVISIONDAY2 روزنسخه۲
        روز_نسخه۲ روز_نسخه_۲; REVISIONMONTH ماهنسخه ماه_نسخه; REVISIONMONTH1 ماهنسخه۱ ماه_نسخه_۱; REVISIONYEAR سالنسخه
        سال_نسخه; REVISIONTIMESTAMP زمانیونیکسینسخه زماننسخه زمان_یونیکسی_نسخه زمان_نسخه; CURRENTTIMESTAMP زمانیونیکسی
        زمان_یونیکسی; LOCALTIMESTAMP زمانیونیکسیمحلی زمان_یونیکسی_محلی
    """,
    "he": """
        CURRENTMONTH חודש_נוכחי חודש_נוכחי_2; CURRENTMONTH1 חודש_נוכחי_1; CURRENTMONTHNAME שם_חודש_נוכחי;
        CURRENTMONTHNAMEGEN שם_חודש_נוכחי_קניין; CURRENTMONTHABBREV קיצור_חודש_נוכחי; CURRENTDAY יום_נוכחי;
        CURRENTDAY2 יום_נוכחי_2; CURRENTDAYNAME שם_יום_נוכחי; CURRENTYEAR שנה_נוכחית; CURRENTTIME שעה_נוכחית;
        CURRENTHOUR שעות_נוכחיות; LOCALMONTH חודש_מקומי חודש_מקומי_2; LOCALMONTH1 חודש_מקומי_1; LOCALMONTHNAME
        שם_חודש_מקומי; LOCALMONTHNAMEGEN שם_חודש_מקומי_קניין; LOCALMONTHABBREV קיצור_חודש_מקומי; LOCALDAY יום_מקומי;
        LOCALDAY2 יום_מקומי_2; LOCALDAYNAME שם_יום_מקומי; LOCALYEAR שנה_מקומית; LOCALTIME שעה_מקומית; LOCALHOUR
        שעות_מקומיות; CURRENTWEEK שבוע_נוכחי; CURRENTDOW מספר_יום_נוכחי; LOCALWEEK שבוע_מקומי; LOCALDOW
        מספר_יום_מקומי; REVISIONDAY יום_גרסה; REVISIONDAY2 יום_גרסה_2; REVISIONMONTH חודש_גרסה; REVISIONMONTH1
        חודש_גרסה_1; REVISIONYEAR שנת_גרסה; REVISIONTIMESTAMP זמן_גרסה; CURRENTTIMESTAMP זמן_נוכחי; LOCALTIMESTAMP
        זמן_מקומי
    """,
}
_LIKE: Final[Mapping[str, str]] = {"of": "month", "short": "month", "weekday": "day"}
_LANGUAGES_KEPT: Final = 128  # a text may name any
Kind = str  # "month", "of", "short", "day" or "weekday"


@lru_cache(maxsize=_LANGUAGES_KEPT)
def names_in(language: str, kind: Kind) -> tuple[str, ...]:
    """Return the twelve or seven names in a language, by its code; () if they are not known.  "" is English."""
    text = _ROWS.get(main_language(language or "en"))
    if text is None:
        return ()
    row = row_of(text)
    names = row.get(kind, row.get(_LIKE.get(kind, kind), ()))
    return tuple(name.replace("_", " ") for name in names)
