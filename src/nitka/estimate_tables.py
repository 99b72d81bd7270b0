"""What the token estimate knows about characters: facts read off the vocabularies of cl100k_base and o200k_base.

A character that the larger of the two counts needs one token for stands in `ONE`; two, in a range of `TWO`; three, in
a range of `THREE`; every other takes as many as it has bytes in UTF-8. Ranges shorter than 16 are left out, which errs
upward. `LATIN` and `CYRILLIC` list the pairs of letters that the vocabulary's own words often hold: each group is
a first letter and all that may follow it. Two letters that are no such pair mostly fall into two tokens.
"""

ONE = (
    "\u0080\u0092\u00a0¡¢£¤¥¦§¨©ª«¬\u00ad®¯°±²³´µ¶·¹º»¼½¾¿ÀÁÂÃÄÇÉÍÎÐÑÓÖ×ÚÜßàáâãäåæç"
    "èéêëìíîïðñòóôõöøùúûüýāăąćčĐđēęěğīİıłńōőœřśşšţťūůűźżžơưșțəɵ\u0300\u0301άέήίαβγ"
    "δεηθικλμνοπρςστυφχωόЂіאבדהוחילמנערשת،أإابةتثجحخدذرزسشصضطظعغفقكلمنهوىي\u064e\u064f"
    "\u0650\u0651\u0652پکگی\u0902कतनपमरलसह\u093e\u093f\u0940\u0941\u0947\u094b\u094dনর\u09be\u09bf\u09c7"
    "\u09cd\u0bbf\u0bc1\u0bcd\u0d4dกขคงจชณดตถทนบปผพมยรลวสหอะ\u0e31าำ\u0e34\u0e35\u0e37\u0e38\u0e39เแใไ\u0e47"
    "\u0e48\u0e49\u0e4c\u17b6ạảấầẩậắặếềểệỉịọỏốồổỗộớờởợụủứửữự\u200b\u200c\u200e‐‑–—―‘’‚“”„†•…‰′″"
    "›※₂€™←↑→↓−─━│═║╗╝█░■►●★☆☴♀♥♪✔⠀\u3000、。《》「」『』【】〜あいうえおかがきくけこ"
    "ごさざしじすせそただちっつてでとどなにのはばまみめもやよらりるれろわをんアィイウェエオカキクグコサシジス"
    "ズセタダチッテデトドナニバパビピフブプペポマムメャュョラリルレロン・ー一万三上下不与专业东两个中串为主么"
    "义之也书了事二于五些交产享京人亿今介从他付代以们件价任份企优会传但位体何余作你使例供価保信修倍值停像元先"
    "入全公共关其具内円册再写出击分列则初利别到制前力功加务动動包化北区十午华单南即历原去县参及友反发取变口只"
    "可台右号司合同名后向否含听启告员周命和品哈商問器四回因国图土在地场址型城基報場填增声处备复外多大天失头女"
    "好如始子字存学安宋完定实审客家容密对导将小少尔就局展山岁州工左已市布常平年并广序库应店度建开异式引张当录"
    "形影径待後得微心必志态思性总息您情意感成我或户所手打找技投报拉持指按换据排接推提播支收改放政效数整文料断"
    "新方族无日时明易星是時景更最月有服期木未本机权束条来板构析果查标样核格案检模次款止正此步歳段每比民気水求"
    "江汽没治法注活流海消清游源火点無然片版物特率环现球理生用由电男画界番登的监目直相省看県真知码确示社票私种"
    "科秒称移程稍税稿空立站章端笑符第等签简算管箱米类系素索约级线组经结给络统编网置美老考者而联能自至色节英藏"
    "行表装西要見见规视角解言計記話読计认议记论设证评试话询该详语误说请读调象责败账货购费资起超路身车转软载辑"
    "输达过运近还这进连述退送选通速造連道邮部都配释里重量金钟钮链销错键长開間関门闭问间队阳陆限院除雅集雷需非"
    "面音页项预频题额首验高黑가간값개거게결경고공과구그글기나내는능니다당대도동되된드든들디라래러력로록료류른"
    "를름리만메면명목문미버번보복부분비사산상색생서성세션소수스습시식신아야어에여열오와요용우운원위으은을음의"
    "이인일임입자작장재적전정제져조주지진째체출치크태터턴트튼하한할함해호화환회\ufe0f\ufeff！（），－．／０１"
    "２３４５６７８９：；＞？＾～･￥�"
)

TWO = (
    (0x80, 0x800),
    (0x900, 0xAFF),
    (0xB80, 0xEBF),
    (0xEFF, 0xF7F),
    (0x1000, 0x103F),
    (0x10C0, 0x10FF),
    (0x1780, 0x1800),
    (0x1E80, 0x1EFF),
    (0x2000, 0x20BF),
    (0x2100, 0x21BF),
    (0x2200, 0x227F),
    (0x2440, 0x247F),
    (0x2500, 0x267F),
    (0x2700, 0x27BF),
    (0x3000, 0x30FF),
    (0x3140, 0x317F),
    (0x4E00, 0x507F),
    (0x50C0, 0x50FF),
    (0x5140, 0x547F),
    (0x54C0, 0x55BF),
    (0x56C0, 0x577F),
    (0x57C0, 0x597F),
    (0x59C0, 0x59FF),
    (0x5B40, 0x5CBF),
    (0x5DC0, 0x607F),
    (0x60C0, 0x613F),
    (0x6200, 0x63FF),
    (0x6440, 0x64BF),
    (0x6500, 0x687F),
    (0x68C0, 0x68FF),
    (0x6940, 0x697F),
    (0x6B00, 0x6F3F),
    (0x7040, 0x707F),
    (0x7100, 0x713F),
    (0x7200, 0x727F),
    (0x7380, 0x743F),
    (0x7500, 0x757F),
    (0x7640, 0x777F),
    (0x7840, 0x78BF),
    (0x7900, 0x7BFF),
    (0x7C40, 0x7CBF),
    (0x7D00, 0x7D7F),
    (0x7E80, 0x7FBF),
    (0x8000, 0x80FF),
    (0x81C0, 0x837F),
    (0x83C0, 0x843F),
    (0x8640, 0x867F),
    (0x8840, 0x88FF),
    (0x897F, 0x8ABF),
    (0x8B40, 0x8DFF),
    (0x8F40, 0x90FF),
    (0x91C0, 0x91FF),
    (0x9300, 0x933F),
    (0x9480, 0x977F),
    (0x9800, 0x98FF),
    (0x997F, 0x99BF),
    (0x9A40, 0x9A7F),
    (0x9EC0, 0x9EFF),
    (0x9F80, 0x9FBF),
    (0xAC00, 0xAD00),
    (0xAD40, 0xAD7F),
    (0xADC0, 0xAE7F),
    (0xB080, 0xB0BF),
    (0xB100, 0xB17F),
    (0xB280, 0xB300),
    (0xB340, 0xB37F),
    (0xB3C0, 0xB43F),
    (0xB4C0, 0xB53F),
    (0xB780, 0xB87F),
    (0xB8C0, 0xB8FF),
    (0xB940, 0xB9FF),
    (0xBA40, 0xBABF),
    (0xBBC0, 0xBC3F),
    (0xBC80, 0xBD00),
    (0xBD80, 0xBDBF),
    (0xBE00, 0xBE3F),
    (0xC080, 0xC1BF),
    (0xC280, 0xC300),
    (0xC540, 0xC7BF),
    (0xC800, 0xC83F),
    (0xC900, 0xC93F),
    (0xC97F, 0xC9FF),
    (0xCC00, 0xCC3F),
    (0xCC80, 0xCCBF),
    (0xCD80, 0xCDBF),
    (0xCE40, 0xCE7F),
    (0xD040, 0xD07F),
    (0xD0C0, 0xD13F),
    (0xD280, 0xD2BF),
    (0xD300, 0xD33F),
    (0xD540, 0xD57F),
    (0xD600, 0xD67F),
    (0xF080, 0xF0BF),
    (0xFE00, 0xFE3F),
    (0xFEFF, 0xFFFF),
    (0x1F480, 0x1F4BF),
    (0x1F600, 0x1F63F),
)

THREE = (
    (0x11400, 0x1143F),
    (0x11700, 0x1173F),
    (0x15300, 0x1533F),
    (0x19080, 0x190BF),
    (0x1A300, 0x1A33F),
    (0x1B100, 0x1B13F),
    (0x1D000, 0x1DFFF),
    (0x1E2C0, 0x1E300),
    (0x1F000, 0x1FFFF),
)

LATIN = (
    "abcdgilmnprst bel caehikort daeio eacdelmnrst fi ger haeio iacdeglmnorstv ke laeiloy maeiop nacdegiost "
    "oclmnprstu paelor raeiost sacehiopstu taehiorstuy ulmnrst vei "
)

CYRILLIC = (
    "абвгджзйклмнпрстчшя дар ебвгдежзйклмнпрстхчшщ ивгдзийклмнпрстфхчя каеиу лаиоьюя мия наиоыя "
    "обвгдежзйклмнпрстчщя пп рагиуы склптыя тиоуыь убгджйкмнпрстчщю цаи шеи ывейх ью ютщ ядзт "
)
