"""(pure) The names of MediaWiki's variables and functions in other languages than English, behind the English names.

    PAGENAME SEITENNAME     a variable; its letters have this case alone
    lc KLEIN                a function: ``{{KLEIN:Text}}``, in any case of letters
    #if si                  a parser function: ``{{#si: ...}}``

"_" stands for a blank, too.  The names are those of MediaWiki's language files and of its extension ParserFunctions.
MediaWiki knows the English names in every language, and others only in a wiki of their language.  ``mediawiki_months``
has those of variables of the time.

Knows nothing of what the names mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from wikka_port.markup.mediawiki_months import TIME_NAMES
from wikka_port.markup.mediawiki_words import folded, rows_for

_ROWS: Final[Mapping[str, str]] = {
    "de": """
        PAGENAME SEITENNAME; PAGENAMEE SEITENNAME_URL; FULLPAGENAME VOLLER_SEITENNAME; FULLPAGENAMEE
        VOLLER_SEITENNAME_URL; BASEPAGENAME OBERSEITE; SUBPAGENAME UNTERSEITE; TALKPAGENAME DISKUSSIONSSEITE DISK;
        SUBJECTPAGENAME HAUPTSEITE; NAMESPACE NAMENSRAUM; NAMESPACENUMBER NAMENSRAUMNUMMER; TALKSPACE
        DISKUSSIONSNAMENSRAUM DISK_NR; SUBJECTSPACE HAUPTNAMENSRAUM; SITENAME PROJEKTNAME; ns NR; lc KLEIN; uc GROSS;
        lcfirst INITIAL_KLEIN; ucfirst INITIAL_GROSS; fullurl VOLLSTÄNDIGE_URL; localurl LOKALE_URL; canonicalurl
        KANONISCHE_URL; urlencode URLENKODIERT; formatnum ZAHLENFORMAT; padleft FÜLLENLINKS; padright FÜLLENRECHTS;
        grammar GRAMMATIK; gender GESCHLECHT; DEFAULTSORT SORTIERUNG; DISPLAYTITLE SEITENTITEL; #tag erweiterung;
        #switch wechsle; #default standard; #count zähle; #replace ersetze; anchorencode ANKERENKODIERT
        SPRUNGMARKEENKODIERT; nse NR_URL; #formatdate DATUMSFORMAT
    """,
    "fr": """
        PAGENAME NOMPAGE; PAGENAMEE NOMPAGEX; FULLPAGENAME NOMPAGECOMPLET; FULLPAGENAMEE NOMPAGECOMPLETX; BASEPAGENAME
        NOMBASEDEPAGE; SUBPAGENAME NOMSOUSPAGE; TALKPAGENAME NOMPAGEDISCUSSION; SUBJECTPAGENAME NOMPAGESUJET
        NOMPAGEARTICLE; NAMESPACE ESPACENOMMAGE; TALKSPACE ESPACEDISCUSSION; SUBJECTSPACE ESPACESUJET ESPACEARTICLE;
        SITENAME NOMSITE; SERVER SERVEUR; SERVERNAME NOMSERVEUR; ns ESPACEN; lc MINUS; uc MAJUS CAPIT; lcfirst
        INITMINUS; ucfirst INITMAJUS INITCAPIT; fullurl URLCOMPLETE; localurl URLLOCALE; urlencode ENCODEURL;
        formatnum FORMATNOMBRE; plural PLURIEL; padleft BOURRAGEGAUCHE BOURREGAUCHE; padright BOURRAGEDROITE
        BOURREDROITE; grammar GRAMMAIRE; gender GENRE; DEFAULTSORT CLEFDETRI CLEDETRI; DISPLAYTITLE AFFICHERTITRE;
        #tag balise; #len nbcar; #rpos posr; #sub stxt; #count nb; #replace remplacer; #explode exploser; #rel2abs
        relenabs; #timel heurel; #ifexist siexiste; #time heure; anchorencode ENCODEANCRE; nse ESPACENX
    """,
    "es": """
        PAGENAME NOMBREDEPAGINA NOMBREDEPÁGINA; PAGENAMEE NOMBREDEPAGINAC NOMBREDEPÁGINAC; FULLPAGENAME
        NOMBRECOMPLETODEPÁGINA NOMBRECOMPLETODEPAGINA; FULLPAGENAMEE NOMBRECOMPLETODEPAGINAC NOMBRECOMPLETODEPÁGINAC;
        BASEPAGENAME NOMBREDEPAGINABASE NOMBREDEPÁGINABASE; SUBPAGENAME NOMBREDESUBPAGINA NOMBREDESUBPÁGINA;
        TALKPAGENAME NOMBREDEPÁGINADEDISCUSIÓN NOMBREDEPAGINADEDISCUSION; SUBJECTPAGENAME NOMBREDEPAGINADETEMA
        NOMBREDEPÁGINADETEMA NOMBREDEPAGINADEARTICULO NOMBREDEPÁGINADEARTÍCULO; NAMESPACE ESPACIODENOMBRE;
        NAMESPACENUMBER NÚMERODELESPACIO; TALKSPACE ESPACIODEDISCUSION ESPACIODEDISCUSIÓN; SUBJECTSPACE
        ESPACIODEASUNTO ESPACIODETEMA ESPACIODEARTÍCULO ESPACIODEARTICULO; SITENAME NOMBREDELSITIO; SERVER SERVIDOR;
        SERVERNAME NOMBRESERVIDOR; ns EN; lc MINUS MINÚS; uc MAYUS MAYÚS; lcfirst PRIMEROMINÚS; ucfirst PRIMEROMAYÚS;
        fullurl URLCOMPLETA; localurl URLLOCAL; canonicalurl URLCANONICA; urlencode CODIFICARURL; formatnum
        FORMATONÚMERO FORMATONUMERO; grammar GRAMATICA GRAMÁTICA; gender GÉNERO GENERO; DEFAULTSORT ORDENAR
        CLAVEDEORDENPREDETERMINADO; DISPLAYTITLE MOSTRARTÍTULO MOSTRARTITULO; #tag etiqueta; #if si; #ifexpr siexpr;
        #iferror sierror; #switch según; #ifexist siexiste; #time tiempo; #len long longitud; #replace reemplazar;
        #timel tiempol; #formatdate formatodefecha formatearfecha
    """,
    "pt": """
        PAGENAME NOMEDAPAGINA NOMEDAPÁGINA; PAGENAMEE NOMEDAPAGINAC NOMEDAPÁGINAC; FULLPAGENAME NOMECOMPLETODAPAGINA
        NOMECOMPLETODAPÁGINA; FULLPAGENAMEE NOMECOMPLETODAPAGINAC NOMECOMPLETODAPÁGINAC; BASEPAGENAME NOMEDAPAGINABASE
        NOMEDAPÁGINABASE; SUBPAGENAME NOMEDASUBPAGINA NOMEDASUBPÁGINA; TALKPAGENAME NOMEDAPAGINADEDISCUSSAO
        NOMEDAPÁGINADEDISCUSSÃO; SUBJECTPAGENAME NOMEDAPAGINADECONTEUDO NOMEDAPÁGINADECONTEÚDO; NAMESPACE DOMINIO
        DOMÍNIO ESPACONOMINAL ESPAÇONOMINAL; TALKSPACE PAGINADEDISCUSSAO PÁGINADEDISCUSSÃO; SUBJECTSPACE
        PAGINADECONTEUDO PAGINADECONTEÚDO; SITENAME NOMEDOSITE NOMEDOSÍTIO NOMEDOSITIO; SERVER SERVIDOR; SERVERNAME
        NOMEDOSERVIDOR; lc MINUSCULA MINÚSCULA MINUSCULAS MINÚSCULAS; uc MAIUSCULA MAIÚSCULA MAIUSCULAS MAIÚSCULAS;
        lcfirst PRIMEIRAMINUSCULA PRIMEIRAMINÚSCULA; ucfirst PRIMEIRAMAIUSCULA PRIMEIRAMAIÚSCULA; fullurl URLCOMPLETO;
        urlencode CODIFICAURL; gender GENERO GÊNERO; DEFAULTSORT ORDENACAOPADRAO ORDENAÇÃOPADRÃO ORDEMPADRAO
        ORDEMPADRÃO; DISPLAYTITLE EXIBETITULO EXIBETÍTULO; #if se; #ifeq seigual; #ifexpr seexpr; #iferror seerro;
        #default padrão padrao; #ifexist seexiste; #titleparts partesdotítulo partesdotitulo; anchorencode
        CODIFICAANCORA CODIFICAÂNCORA
    """,
    "it": """
        PAGENAME TITOLOPAGINA; PAGENAMEE TITOLOPAGINAE; SUBPAGENAME NOMESOTTOPAGINA; SITENAME NOMESITO; SERVERNAME
        NOMESERVER; plural PLURALE; gender GENERE; #tag etichetta; #expr espr; #if se; #ifeq seeq; #ifexpr seespr;
        #iferror seerrore; #ifexist seesiste; #time tempo; #titleparts patititolo; #count conto; #formatdate
        formatodata
    """,
    "nl": """
        PAGENAME PAGINANAAM; PAGENAMEE PAGINANAAME; FULLPAGENAME VOLLEDIGEPAGINANAAM; FULLPAGENAMEE
        VOLLEDIGEPAGINANAAME; BASEPAGENAME BASISPAGINANAAM; SUBPAGENAME DEELPAGINANAAM; TALKPAGENAME
        OVERLEGPAGINANAAM; SUBJECTPAGENAME ONDERWERPPAGINANAAM ARTIKELPAGINANAAM; NAMESPACE NAAMRUIMTE;
        NAMESPACENUMBER NAAMRUIMTENUMMER; TALKSPACE OVERLEGRUIMTE; SUBJECTSPACE ONDERWERPRUIMTE ARTIKELRUIMTE;
        SITENAME SITENAAM; SERVERNAME SERVERNAAM; ns NR; lc KL; uc HL; lcfirst KLEERSTE; ucfirst GLEERSTE HLEERSTE;
        fullurl VOLLEDIGEURL; localurl LOKALEURL; urlencode URLCODEREN CODEERURL; formatnum FORMATTEERNUM
        NUMFORMATTEREN; plural MEERVOUD; padleft LINKSOPVULLEN; padright RECHTSOPVULLEN; grammar GRAMMATICA; gender
        GESLACHT; DEFAULTSORT STANDAARDSORTERING; DISPLAYTITLE WEERGEGEVENTITEL TOONTITEL; #tag label; #expr
        expressie; #if als; #ifeq alsgelijk; #ifexpr alsexpressie; #iferror alsfout; #switch schakelen; #default
        standaard; #ifexist alsbestaat; #time tijd; #titleparts paginanaamdelen; #count telling; #replace vervangen;
        #explode exploderen; #rel2abs relatiefnaarabsoluut; #timel tijdl; anchorencode ANKERCODEREN CODEERANKER; nse
        NRE; #formatdate datumopmaak
    """,
    "pl": """
        PAGENAME NAZWASTRONY; FULLPAGENAME PELNANAZWASTRONY; BASEPAGENAME BAZOWANAZWASTRONY; SUBPAGENAME
        NAZWAPODSTRONY; TALKPAGENAME NAZWASTRONYDYSKUSJI; NAMESPACE NAZWAPRZESTRZENI; TALKSPACE DYSKUSJA; SITENAME
        PROJEKT; SERVER SERWER; SERVERNAME NAZWASERWERA; ns PN; lc MAŁE; uc WIELKIE DUŻE; lcfirst ZMAŁEJ; ucfirst
        ZWIELKIEJ ZDUŻEJ; fullurl PEŁNYURL; plural MNOGA; padleft DOLEWEJ; padright DOPRAWEJ; grammar ODMIANA; gender
        PŁEĆ; DEFAULTSORT DOMYŚLNIESORTUJ; DISPLAYTITLE WYŚWIETLANYTYTUŁ
    """,
    "sv": """
        PAGENAME SIDNAMN; PAGENAMEE SIDNAMNE; FULLPAGENAME HELASIDNAMNET; FULLPAGENAMEE HELASIDNAMNETE; BASEPAGENAME
        GRUNDSIDNAMN; SUBPAGENAME UNDERSIDNAMN; TALKPAGENAME DISKUSSIONSSIDNAMN; NAMESPACE NAMNRYMD; TALKSPACE
        DISKUSSIONSRYMD; SUBJECTSPACE ARTIKELRYMD; SITENAME SAJTNAMN SITENAMN; SERVERNAME SERVERNAMN; ns NR; lc LB; uc
        SB; lcfirst LBFÖRST; ucfirst SBFÖRST; fullurl FULLTURL; localurl LOKALURL; formatnum FORMATERANUM
        FORMATERATAL; grammar GRAMMATIK; gender KÖN; DEFAULTSORT STANDARDSORTERING; DISPLAYTITLE VISATITEL; #tag tagg;
        #expr utr; #if om; #ifeq omlika; #ifexpr omutr; #iferror omfel; #switch växel; #default standard; #ifexist
        omfinns; #time tid; #replace ersätt; #timel tidl; #formatdate formateradatum datumformat
    """,
    "cs": """
        PAGENAME NÁZEVSTRANY; PAGENAMEE NÁZEVSTRANYE; FULLPAGENAME PLNÝNÁZEVSTRANY; FULLPAGENAMEE PLNÝNÁZEVSTRANYE;
        BASEPAGENAME NÁZEVNADSTRANY; SUBPAGENAME NÁZEVPODSTRANY; TALKPAGENAME NÁZEVDISKUSE; SUBJECTPAGENAME
        NÁZEVČLÁNKU; NAMESPACE JMENNÝPROSTOR; TALKSPACE DISKUSNÍPROSTOR; SUBJECTSPACE ČLÁNEKPROSTOR; SITENAME
        NÁZEVWEBU; SERVERNAME NÁZEVSERVERU; ns JMENNÝPROSTOR; lc MALÁ; uc VELKÁ; lcfirst PRVNÍMALÉ; ucfirst
        PRVNÍVELKÉ; fullurl PLNÉURL; localurl MÍSTNÍURL; urlencode ENKÓDOVATURL; formatnum FORMÁTUJČÍSLO; plural
        PLURÁL; padleft ZAROVNATVLEVO; padright ZAROVNATVPRAVO; grammar SKLOŇUJ; DEFAULTSORT KLÍČŘAZENÍ; DISPLAYTITLE
        ZOBRAZOVANÝNADPIS; #tag značka; #expr výraz; #if když; #ifexist kdyžexist; #time čas; #len délka; #count
        počet; anchorencode ENKÓDOVATNADPIS; nse JMENNÝPROSTORE; #formatdate formátujdatum
    """,
    "tr": """
        PAGENAME SAYFAADI; PAGENAMEE SAYFAADIU; FULLPAGENAME TAMSAYFAADI; FULLPAGENAMEE TAMSAYFAADIU; SUBPAGENAME
        ALTSAYFAADI; TALKPAGENAME TARTIŞMASAYFASIADI; SUBJECTPAGENAME KONUSAYFASIADI MADDESAYFASIADI; NAMESPACE
        ADALANI İSİMALANI; NAMESPACENUMBER ADALANINUMARASI; TALKSPACE TARTIŞMAALANI TARTIŞMABOŞLUĞU; SUBJECTSPACE
        KONUALANI MADDEALANI KONUBOŞLUĞU MADDEBOŞLUĞU; SITENAME SİTEADI; SERVER SUNUCU; SERVERNAME SUNUCUADI; ns AA
        AB; lc KH; uc BH; lcfirst KHİLK; ucfirst BHİLK; fullurl TAMURL; localurl YERELURL; urlencode URLKODLAMA;
        formatnum BİÇİMNUM; plural ÇOĞUL; padleft DOLSOL; padright DOLSAĞ; grammar DİLBİLGİSİ GRAMER; gender CİNSİYET;
        DEFAULTSORT VARSAYILANSIRALA VARSAYILANSIRALAMAANAHTARI VARSAYILANKATEGORİSIRALA; DISPLAYTITLE BAŞLIKGÖSTER;
        #tag etiket; #expr işlem islem ifade; #if eğer eger; #switch değiştir degistir; #default vas; anchorencode
        ÇENGELKODLAMA; nse AAU ABU; #formatdate biçimtarih tarihbiçimi formattarihi tarihformatı
    """,
    "vi": """
        PAGENAME TÊNTRANG; PAGENAMEE TÊNTRANG2; FULLPAGENAME TÊNTRANGĐỦ; BASEPAGENAME TÊNTRANGGỐC; SUBPAGENAME
        TÊNTRANGPHỤ; TALKPAGENAME TÊNTRANGTHẢOLUẬN; SUBJECTPAGENAME TÊNTRANGNỘIDUNG; NAMESPACE KHÔNGGIANTÊN; TALKSPACE
        KGTTHẢOLUẬN; SUBJECTSPACE KGTNỘIDUNG; SITENAME TÊNMẠNG; SERVER MÁYCHỦ; SERVERNAME TÊNMÁYCHỦ; ns KGT; fullurl
        URLĐỦ; localurl URLĐỊAPHƯƠNG; urlencode MÃHÓAURL; formatnum PHÂNCHIASỐ; plural SỐNHIỀU; grammar NGỮPHÁP;
        gender GIỐNG; DEFAULTSORT XẾPMẶCĐỊNH; #tag thẻ; #len số_chữ sốchữ số_ký_tự sốkýtự số_kí_tự sốkítự; #pos vị_trí
        vịtrí; #rpos vị_trí_phải vịtríphải; #sub chuỗi_con chuỗicon; #count số; #replace thay_thế thaythế; #timel
        giờ_địa_phương giờđịaphương; #ifexist nếu_tồn_tại nếutồntại; #time giờ; anchorencode MÃ_HÓA_NEO MÃHÓANEO
        MÃ_HOÁ_NEO MÃHOÁNEO; #formatdate định_dạng_ngày địnhdạngngày
    """,
    "id": """
        SITENAME NAMASITUS NAMSIT; SERVER PELADEN; SERVERNAME NAMAPELADEN NAMASERVER NAMPEL; ns RN RUNAM; lc KC KECIL
        HURUFKECIL; uc BS BESAR HURUFBESAR; lcfirst AKC AWALKECIL; ucfirst ABS AWALBESAR; fullurl URLLENGKAP; localurl
        URLLOKAL; urlencode KODEURL KODU; formatnum FORMATANGKA FORANG; plural JAMAK; padleft ISIKIRI IKI; padright
        ISIKANAN IKA; grammar TATABAHASA TASA; gender JANTINA; DEFAULTSORT URUTANBAKU UBUR; DISPLAYTITLE JUDULTAMPILAN
        JUTAM; #tag kata_kunci takun; #expr hitung; #if jika; #ifeq jikasama; #ifexpr jikahitung; #iferror jikasalah;
        #switch pilih; #default baku; #ifexist jikaada; #time waktu; #titleparts bagianjudul; #timel waktu1;
        anchorencode KODEJANGKAR KOJANG; #formatdate formattanggal
    """,
    "ru": """
        PAGENAME НАЗВАНИЕ_СТРАНИЦЫ; PAGENAMEE НАЗВАНИЕ_СТРАНИЦЫ_2; FULLPAGENAME ПОЛНОЕ_НАЗВАНИЕ_СТРАНИЦЫ;
        FULLPAGENAMEE ПОЛНОЕ_НАЗВАНИЕ_СТРАНИЦЫ_2; BASEPAGENAME ОСНОВА_НАЗВАНИЯ_СТРАНИЦЫ; SUBPAGENAME
        НАЗВАНИЕ_ПОДСТРАНИЦЫ; TALKPAGENAME НАЗВАНИЕ_СТРАНИЦЫ_ОБСУЖДЕНИЯ; SUBJECTPAGENAME НАЗВАНИЕ_СТРАНИЦЫ_СТАТЬИ;
        NAMESPACE ПРОСТРАНСТВО_ИМЁН; NAMESPACENUMBER НОМЕР_ПРОСТРАНСТВА_ИМЁН; TALKSPACE ПРОСТРАНСТВО_ОБСУЖДЕНИЙ;
        SUBJECTSPACE ПРОСТРАНСТВО_СТАТЕЙ; SITENAME НАЗВАНИЕ_САЙТА; SERVER СЕРВЕР; SERVERNAME НАЗВАНИЕ_СЕРВЕРА; ns ПИ;
        lc МАЛЕНЬКИМИ_БУКВАМИ; uc БОЛЬШИМИ_БУКВАМИ; lcfirst ПЕРВАЯ_БУКВА_МАЛЕНЬКАЯ; ucfirst ПЕРВАЯ_БУКВА_БОЛЬШАЯ;
        fullurl ПОЛНЫЙ_АДРЕС; localurl ЛОКАЛЬНЫЙ_АДРЕС; urlencode ЗАКОДИРОВАННЫЙ_АДРЕС; formatnum ФОРМАТИРОВАТЬ_ЧИСЛО;
        plural МНОЖЕСТВЕННОЕ_ЧИСЛО; padleft ЗАПОЛНИТЬ_СЛЕВА; padright ЗАПОЛНИТЬ_СПРАВА; grammar ПАДЕЖ; gender ПОЛ;
        DEFAULTSORT СОРТИРОВКА_ПО_УМОЛЧАНИЮ КЛЮЧ_СОРТИРОВКИ; DISPLAYTITLE ПОКАЗАТЬ_ЗАГОЛОВОК; #tag метка тег тэг;
        #timel мвремя; #time время; anchorencode КОДИРОВАТЬ_МЕТКУ; nse ПИК; #formatdate форматдаты
    """,
    "uk": """
        PAGENAME НАЗВА_СТОРІНКИ; PAGENAMEE НАЗВА_СТОРІНКИ_2; FULLPAGENAME ПОВНА_НАЗВА_СТОРІНКИ; FULLPAGENAMEE
        ПОВНА_НАЗВА_СТОРІНКИ_2; BASEPAGENAME ОСНОВА_НАЗВИ_ПІДСТОРІНКИ; SUBPAGENAME НАЗВА_ПІДСТОРІНКИ; TALKPAGENAME
        НАЗВА_СТОРІНКИ_ОБГОВОРЕННЯ; SUBJECTPAGENAME НАЗВА_СТАТТІ НАЗВА_СТОРІНКИ_СТАТТІ; NAMESPACE ПРОСТІР_НАЗВ;
        TALKSPACE ПРОСТІР_ОБГОВОРЕННЯ; SUBJECTSPACE ПРОСТІР_СТАТЕЙ; SITENAME НАЗВА_САЙТУ; SERVERNAME НАЗВА_СЕРВЕРА; ns
        ПН; lc НР НИЖНІЙ_РЕГІСТР МАЛИМИ_БУКВАМИ МАЛИМИ_ЛІТЕРАМИ; uc ВР ВЕРХНІЙ_РЕГІСТР ВЕЛИКИМИ_БУКВАМИ
        ВЕЛИКИМИ_ЛІТЕРАМИ; lcfirst НР_ПЕРША ПЕРША_БУКВА_МАЛА ПЕРША_ЛІТЕРА_МАЛА МАЛА_ПЕРША_ЛІТЕРА; ucfirst ВР_ПЕРША
        ПЕРША_БУКВА_ВЕЛИКА ВЕЛИКА_ПЕРША_ЛІТЕРА; fullurl ПОВНА_АДРЕСА; localurl ЛОКАЛЬНА_АДРЕСА; urlencode
        ЗАКОДОВАНА_АДРЕСА; formatnum ФОРМАТУВАТИ_ЧИСЛО; plural МНОЖИНА; padleft ЗАПОВНИТИ_ЛІВОРУЧ; padright
        ЗАПОВНИТИ_ПРАВОРУЧ; grammar ВІДМІНОК; gender СТАТЬ; DEFAULTSORT СТАНДАРТНЕ_СОРТУВАННЯ; DISPLAYTITLE
        ПОКАЗАТИ_ЗАГОЛОВОК; #tag тег мітка теґ; #expr вираз; #if якщо; #ifeq якщорівні рівні; #ifexpr якщовираз;
        #iferror якщопомилка; #switch вибірка; #default інакше; #ifexist якщоіснує; anchorencode КОДУВАТИ_МІТКУ
        КОДИРОВАТЬ_МЕТКУ; nse ПН_2 ПИК; #formatdate форматдати форматдаты
    """,
    "bg": """
        PAGENAME СТРАНИЦА; PAGENAMEE СТРАНИЦАИ; FULLPAGENAME ПЪЛНОИМЕ_СТРАНИЦА; SUBPAGENAME ИМЕ_ПОДСТРАНИЦА;
        TALKPAGENAME ИМЕ_БЕСЕДА; NAMESPACE ИМЕННОПРОСТРАНСТВО; SITENAME ИМЕНАСАЙТА; ns ИП; localurl ЛОКАЛЕНАДРЕС
    """,
    "ja": """
        PAGENAME ページ名; PAGENAMEE ページ名E ページ名Ｅ; FULLPAGENAME 完全なページ名 フルページ名 完全な記事名
        完全記事名; FULLPAGENAMEE 完全なページ名E フルページ名E; BASEPAGENAME 親ページ名; SUBPAGENAME サブページ名;
        TALKPAGENAME トークページ名 会話ページ名; SUBJECTPAGENAME 主ページ名 記事ページ名; NAMESPACE 名前空間;
        TALKSPACE トーク空間 ノート空間 会話空間 トークスペース; SUBJECTSPACE 主空間 標準空間 記事空間; SITENAME
        サイト名 サイトネーム; SERVER サーバー サーバ; SERVERNAME サーバー名 サーバーネーム サーバ名 サーバネーム; ns
        名前空間 名空; lc 小文字; uc 大文字; lcfirst 先頭小文字; ucfirst 先頭大文字; fullurl 完全なURL フルURL;
        localurl ローカルURL; urlencode URLエンコード; formatnum 数整形; plural 複数; padleft 補充左; padright 補充右;
        grammar 文法; gender 性別; DEFAULTSORT デフォルトソート デフォルトソートキー デフォルトカテゴリソート;
        DISPLAYTITLE 表示タイトル; #tag タグ; #expr 式; #if もし; #ifeq もし等しい; #ifexpr もし式; #iferror
        もしエラー; #switch 切り替え; #default 既定; #ifexist もし存在; #time 時間; #titleparts タイトル部分; #len
        長さ; #pos 位置; #rpos 最後の位置; #sub 切り取り; #count 回数; #replace 置き換え; #explode 分割; #rel2abs
        参照から絶対; #timel 時間地方; anchorencode アンカー用エンコード; nse 名前空間E; #formatdate 日付整形
    """,
    "ko": """
        PAGENAME 문서이름; PAGENAMEE 문서이름E; FULLPAGENAME 전체문서이름; FULLPAGENAMEE 전체문서이름E; BASEPAGENAME
        상위문서이름; SUBPAGENAME 하위문서이름; TALKPAGENAME 토론문서이름; SUBJECTPAGENAME 본문서이름; NAMESPACE
        이름공간; NAMESPACENUMBER 이름공간수; TALKSPACE 토론이름공간; SUBJECTSPACE 본문서이름공간; SITENAME
        사이트이름; SERVER 서버; SERVERNAME 서버이름; ns 이름 이름공간; lc 소문자; uc 대문자; lcfirst 첫소문자;
        ucfirst 첫대문자; fullurl 전체주소; localurl 지역주소; canonicalurl 표준주소; urlencode 주소인코딩; formatnum
        수형식; plural 복수 복수형; padleft 대체왼쪽; padright 대체오른쪽; grammar 문법; gender 성별; DEFAULTSORT
        기본정렬; DISPLAYTITLE 제목보이기 제목표시; #tag 태그; #expr 수식; #if 만약; #ifeq 만약일치; #ifexpr 만약계산;
        #iferror 만약오류; #switch 스위치; #default 기본값; #ifexist 만약존재; #time 시간; #len 길이; #pos 위치; #rpos
        오른위치; #sub 자르기; #count 개수; #replace 바꾸기 교체; #explode 분리; #rel2abs 상대를절대로; #timel
        현지시간; anchorencode 책갈피인코딩; nse 이름E 이름공간E; #formatdate 날짜형식
    """,
    "zh": """
        PAGENAME 页名 页面名 页面名称 頁面名稱; PAGENAMEE 页面名等同 页面名称等同; FULLPAGENAME 页面全称 完整页面名称;
        FULLPAGENAMEE 完整页面名称等同; BASEPAGENAME 基础页面名称; ROOTPAGENAME 根页面名称 根頁面名稱; SUBPAGENAME
        子页面名称; TALKPAGENAME 讨论页面名称 对话页面名称; SUBJECTPAGENAME 主名字空间页面名称 条目页面名称; NAMESPACE
        名字空间 命名空間; NAMESPACENUMBER 名字空间编号 命名空間數; TALKSPACE 讨论空间 讨论名字空间 對話空間;
        SUBJECTSPACE 主名字空间 条目名字空间; SITENAME 站点名称 網站名稱; SERVER 服务器 伺服器; SERVERNAME 服务器名
        伺服器名稱; ns 名称空间 名字空间 命名空間; lc 小写; uc 大写; lcfirst 小写首字; ucfirst 大写首字; fullurl
        完整URL; localurl 本地URL; canonicalurl 规范URL; urlencode URL编码; formatnum 格式化数字; plural 复数; padleft
        左填充; padright 右填充; grammar 语法; gender 性别 性別 性; DEFAULTSORT 默认排序 默认排序关键字 默认分类排序;
        DISPLAYTITLE 显示标题 顯示標題; #tag 标记; #len 长度 長度; #pos 位置 终端; #rpos 最近位置 反终端; #sub 截取
        pf子; #count 计数 計算; #replace 替换 取代; #ifexist 存在式 若有 如有; #explode 粉碎; #timel 时间l 時間l;
        #time 时间 時間; anchorencode 锚编码; nse 名称空间E 命名空間E 名字空间E; #formatdate 格式化日期 日期格式化
    """,
    "ar": """
        PAGENAME اسم_الصفحة; PAGENAMEE عنوان_الصفحة; FULLPAGENAME اسم_الصفحة_الكامل اسم_صفحة_كامل اسم_كامل;
        FULLPAGENAMEE عنوان_الصفحة_الكامل عنوان_صفحة_كامل عنوان_كامل; BASEPAGENAME اسم_الصفحة_الأساسي; SUBPAGENAME
        اسم_الصفحة_الفرعي; TALKPAGENAME اسم_صفحة_النقاش; SUBJECTPAGENAME اسم_صفحة_الموضوع اسم_صفحة_المقالة; NAMESPACE
        نطاق; TALKSPACE نطاق_النقاش; SUBJECTSPACE نطاق_الموضوع نطاق_المقالة; lc صغير; uc كبير; urlencode كود_المسار;
        formatnum صيغة_رقم; padleft باد_يسار; padright باد_يمين; DEFAULTSORT ترتيب_افتراضي مفتاح_ترتيب_افتراضي
        ترتيب_تصنيف_افتراضي ترتيب_غيابي; DISPLAYTITLE عرض_العنوان; #tag وسم; #expr تعبير; #if لو; #ifeq لومعادلة;
        #ifexpr لوتعبير; #iferror لوخطأ; #switch تبديل; #default افتراضي; #ifexist لوموجود; #time وقت; #titleparts
        أجزاء_العنوان; #len لين; #pos بوس; #rpos آربوس; #sub متفرع; #count عدد; #replace استبدال; #explode انفجار;
        #rel2abs ريلتوآبس; #timel تيمل; anchorencode كود_الأنكور; nse نطم; #formatdate تهيئة_التاريخ تهيئة_تاريخ
    """,
    "fa": """
        PAGENAME نامصفحه نام_صفحه; PAGENAMEE نامصفحهکد نام_صفحه_کد; FULLPAGENAME نامکاملصفحه نام_کامل_صفحه;
        FULLPAGENAMEE نامکاملصفحهکد نام_کامل_صفحه_کد; ROOTPAGENAME نام_صفحه_ریشه; SUBPAGENAME نامزیرصفحه نام_زیرصفحه;
        TALKPAGENAME نامصفحهبحث نام_صفحه_بحث; SUBJECTPAGENAME نامصفحهموضوع نامصفحهمقاله نام_صفحه_موضوع نام_صفحه_مقاله;
        NAMESPACE فضاینام فضای_نام; NAMESPACENUMBER شماره_فضای_نام شمارهفضاینام; TALKSPACE فضایبحث فضای_بحث;
        SUBJECTSPACE فضایموضوع فضایمقاله فضای_موضوع فضای_مقاله; SITENAME ناموبگاه نام_وبگاه; SERVER سرور کارساز;
        SERVERNAME نامکارساز نام_کارساز نامسرور نام_سرور; ns فن; lc ک; uc ب; lcfirst ابتداکوچک ابتدا_کوچک; ucfirst
        ابتدابزرگ ابتدا_بزرگ; fullurl نشانیکامل نشانی_کامل; localurl نشانی; urlencode کدنشانی; formatnum آرایشعدد
        آرایش_عدد; plural جمع; padleft لبهچپ لبه_چپ; padright لبهراست لبه_راست; grammar دستورزبان دستور_زبان; gender
        جنسیت جنس; DEFAULTSORT ترتیب ترتیبپیشفرض ترتیب_پیش_فرض; DISPLAYTITLE عنوانظاهری عنوان_ظاهری; #tag برچسب; #expr
        حساب; #if اگر; #ifeq اگرمساوی; #ifexpr اگرحساب; #iferror اگرخطا; #switch گزینه; #default پیشفرض; #ifexist
        اگرموجود; #time زمان; #titleparts پارهعنوان; #len طول; #pos جا; #rpos جار; #sub تکه; #count شمار; #replace
        جایگزین; #explode گسترش; #rel2abs نسبی‌به‌مطلق; #timel زمان‌بلند; anchorencode کدلنگر; nse فنک; #formatdate
        آرایشتاریخ آرایش_تاریخ
    """,
    "he": """
        PAGENAME שם_הדף; PAGENAMEE שם_הדף_מקודד; FULLPAGENAME שם_הדף_המלא; FULLPAGENAMEE שם_הדף_המלא_מקודד;
        BASEPAGENAME שם_דף_הבסיס; SUBPAGENAME שם_דף_המשנה; TALKPAGENAME שם_דף_השיחה; SUBJECTPAGENAME שם_דף_הנושא
        שם_הערך; NAMESPACE מרחב_השם; NAMESPACENUMBER מספר_מרחב_השם; TALKSPACE מרחב_השיחה; SUBJECTSPACE מרחב_הנושא
        מרחב_הערכים; plural רבים; fullurl כתובת_מלאה; formatnum עיצוב_מספר; padleft ריפוד_משמאל; padright ריפוד_מימין;
        grammar דקדוק; DEFAULTSORT מיון_רגיל; #tag תגית; #expr חשב; #if תנאי; #ifeq שווה; #ifexpr חשב_תנאי; #iferror
        תנאי_שגיאה; #switch בחר; #default ברירת_מחדל; #ifexist קיים; #time זמן; #titleparts חלק_בכותרת; #rel2abs
        יחסי_למוחלט; #timel זמןמ; anchorencode עוגן_מקודד; nse מרחב_שם_מקודד; #formatdate עיצוב_תאריך
    """,
}


@dataclass(frozen=True, slots=True)
class Names:
    """The names in one language, or in all of them if it is not known."""

    variables: Mapping[str, str]  # name -> English name
    functions: Mapping[str, str]  # the same, of names in lower case; those of parser functions begin with "#"

    def variable(self, name: str) -> str:
        """Return the English name of a variable; any other name stays."""
        return self.variables.get(folded(name), name)

    def function(self, name: str) -> str:
        """Return the English name of a function, in lower case; any other name stays."""
        name = name.strip().lower()
        return self.functions.get(folded(name), name)


@cache
def names_of(language: str) -> Names:
    """Return the names of a language, by its code; "" for an unknown one."""
    variables: dict[str, str] = {}
    functions: dict[str, str] = {}
    for row in (*rows_for(_ROWS, language), *rows_for(TIME_NAMES, language)):
        for english, names in row.items():
            for name in names:
                if english.isupper():
                    variables.setdefault(name, english)
                else:
                    functions.setdefault(f"{'#' if english.startswith('#') else ''}{name.lower()}", english)
    return Names(variables, functions)
