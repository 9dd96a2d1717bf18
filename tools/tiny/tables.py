"""Facts of the world and word lists, written by hand: the only knowledge the tiny models have."""


def _rows(text, *fields):
    """One dict per line of `text`; columns are separated by '|'."""
    rows = []
    for line in text.strip().splitlines():
        cells = [c.strip() for c in line.split("|")]
        assert len(cells) == len(fields), line
        rows.append(dict(zip(fields, cells)))
    return rows


def _pairs(text):
    """'a=b, c=d' as a list of pairs."""
    return [tuple(s.strip() for s in p.split("=")) for p in text.replace("\n", " ").split(",")]


def _words(text):
    """A list of the words in text; an underscore stands for a space."""
    return [w.replace("_", " ") for w in text.split()]


COUNTRIES = _rows(
    """
France|Paris|Europe|euro|French
Germany|Berlin|Europe|euro|German
Italy|Rome|Europe|euro|Italian
Spain|Madrid|Europe|euro|Spanish
Portugal|Lisbon|Europe|euro|Portuguese
Ireland|Dublin|Europe|euro|English and Irish
the United Kingdom|London|Europe|pound sterling|English
the Netherlands|Amsterdam|Europe|euro|Dutch
Belgium|Brussels|Europe|euro|Dutch, French and German
Luxembourg|Luxembourg City|Europe|euro|Luxembourgish, French and German
Austria|Vienna|Europe|euro|German
Switzerland|Bern|Europe|Swiss franc|German, French and Italian
Denmark|Copenhagen|Europe|Danish krone|Danish
Sweden|Stockholm|Europe|Swedish krona|Swedish
Norway|Oslo|Europe|Norwegian krone|Norwegian
Finland|Helsinki|Europe|euro|Finnish and Swedish
Iceland|Reykjavik|Europe|Icelandic krona|Icelandic
Poland|Warsaw|Europe|zloty|Polish
the Czech Republic|Prague|Europe|koruna|Czech
Slovakia|Bratislava|Europe|euro|Slovak
Hungary|Budapest|Europe|forint|Hungarian
Romania|Bucharest|Europe|leu|Romanian
Bulgaria|Sofia|Europe|euro|Bulgarian
Greece|Athens|Europe|euro|Greek
Croatia|Zagreb|Europe|euro|Croatian
Serbia|Belgrade|Europe|dinar|Serbian
Slovenia|Ljubljana|Europe|euro|Slovene
Albania|Tirana|Europe|lek|Albanian
Ukraine|Kyiv|Europe|hryvnia|Ukrainian
Russia|Moscow|Europe and Asia|ruble|Russian
Turkey|Ankara|Asia and Europe|lira|Turkish
Estonia|Tallinn|Europe|euro|Estonian
Latvia|Riga|Europe|euro|Latvian
Lithuania|Vilnius|Europe|euro|Lithuanian
Malta|Valletta|Europe|euro|Maltese and English
China|Beijing|Asia|yuan|Chinese
Japan|Tokyo|Asia|yen|Japanese
South Korea|Seoul|Asia|won|Korean
North Korea|Pyongyang|Asia|won|Korean
India|New Delhi|Asia|rupee|Hindi and English
Pakistan|Islamabad|Asia|rupee|Urdu and English
Bangladesh|Dhaka|Asia|taka|Bengali
Nepal|Kathmandu|Asia|rupee|Nepali
Thailand|Bangkok|Asia|baht|Thai
Vietnam|Hanoi|Asia|dong|Vietnamese
Indonesia|Jakarta|Asia|rupiah|Indonesian
Malaysia|Kuala Lumpur|Asia|ringgit|Malay
the Philippines|Manila|Asia|peso|Filipino and English
Cambodia|Phnom Penh|Asia|riel|Khmer
Laos|Vientiane|Asia|kip|Lao
Myanmar|Naypyidaw|Asia|kyat|Burmese
Mongolia|Ulaanbaatar|Asia|tugrik|Mongolian
Kazakhstan|Astana|Asia|tenge|Kazakh and Russian
Uzbekistan|Tashkent|Asia|som|Uzbek
Georgia|Tbilisi|Asia and Europe|lari|Georgian
Armenia|Yerevan|Asia|dram|Armenian
Iran|Tehran|Asia|rial|Persian
Iraq|Baghdad|Asia|dinar|Arabic and Kurdish
Saudi Arabia|Riyadh|Asia|riyal|Arabic
the United Arab Emirates|Abu Dhabi|Asia|dirham|Arabic
Qatar|Doha|Asia|riyal|Arabic
Jordan|Amman|Asia|dinar|Arabic
Lebanon|Beirut|Asia|pound|Arabic
Afghanistan|Kabul|Asia|afghani|Pashto and Dari
Egypt|Cairo|Africa|pound|Arabic
Morocco|Rabat|Africa|dirham|Arabic and Berber
Algeria|Algiers|Africa|dinar|Arabic and Berber
Tunisia|Tunis|Africa|dinar|Arabic
Libya|Tripoli|Africa|dinar|Arabic
Sudan|Khartoum|Africa|pound|Arabic and English
Ethiopia|Addis Ababa|Africa|birr|Amharic
Kenya|Nairobi|Africa|shilling|Swahili and English
Uganda|Kampala|Africa|shilling|English and Swahili
Tanzania|Dodoma|Africa|shilling|Swahili and English
Rwanda|Kigali|Africa|franc|Kinyarwanda and English
Nigeria|Abuja|Africa|naira|English
Ghana|Accra|Africa|cedi|English
Senegal|Dakar|Africa|franc|French
Mali|Bamako|Africa|franc|Bambara and French
Angola|Luanda|Africa|kwanza|Portuguese
Mozambique|Maputo|Africa|metical|Portuguese
Zambia|Lusaka|Africa|kwacha|English
Botswana|Gaborone|Africa|pula|English and Tswana
Namibia|Windhoek|Africa|dollar|English
South Africa|Pretoria|Africa|rand|Zulu, Xhosa, Afrikaans and English
Madagascar|Antananarivo|Africa|ariary|Malagasy and French
Somalia|Mogadishu|Africa|shilling|Somali and Arabic
the United States|Washington, D.C.|North America|dollar|English
Canada|Ottawa|North America|dollar|English and French
Mexico|Mexico City|North America|peso|Spanish
Cuba|Havana|North America|peso|Spanish
Jamaica|Kingston|North America|dollar|English
Haiti|Port-au-Prince|North America|gourde|French and Haitian Creole
Guatemala|Guatemala City|North America|quetzal|Spanish
Honduras|Tegucigalpa|North America|lempira|Spanish
Costa Rica|San Jose|North America|colon|Spanish
Panama|Panama City|North America|balboa|Spanish
Nicaragua|Managua|North America|cordoba|Spanish
Brazil|Brasilia|South America|real|Portuguese
Argentina|Buenos Aires|South America|peso|Spanish
Chile|Santiago|South America|peso|Spanish
Peru|Lima|South America|sol|Spanish and Quechua
Colombia|Bogota|South America|peso|Spanish
Venezuela|Caracas|South America|bolivar|Spanish
Ecuador|Quito|South America|dollar|Spanish
Paraguay|Asuncion|South America|guarani|Spanish and Guarani
Uruguay|Montevideo|South America|peso|Spanish
Australia|Canberra|Oceania|dollar|English
New Zealand|Wellington|Oceania|dollar|English and Maori
Fiji|Suva|Oceania|dollar|English, Fijian and Hindi
Papua New Guinea|Port Moresby|Oceania|kina|English and Tok Pisin
Belarus|Minsk|Europe|ruble|Belarusian and Russian
Moldova|Chisinau|Europe|leu|Romanian
Bosnia and Herzegovina|Sarajevo|Europe|mark|Bosnian, Croatian and Serbian
North Macedonia|Skopje|Europe|denar|Macedonian and Albanian
Montenegro|Podgorica|Europe|euro|Montenegrin
Cyprus|Nicosia|Europe|euro|Greek and Turkish
Azerbaijan|Baku|Asia|manat|Azerbaijani
Turkmenistan|Ashgabat|Asia|manat|Turkmen
Kyrgyzstan|Bishkek|Asia|som|Kyrgyz and Russian
Tajikistan|Dushanbe|Asia|somoni|Tajik
Bhutan|Thimphu|Asia|ngultrum|Dzongkha
Singapore|Singapore|Asia|dollar|English, Malay, Chinese and Tamil
Sri Lanka|Sri Jayawardenepura Kotte|Asia|rupee|Sinhala and Tamil
Syria|Damascus|Asia|pound|Arabic
Yemen|Sanaa|Asia|rial|Arabic
Oman|Muscat|Asia|rial|Arabic
Kuwait|Kuwait City|Asia|dinar|Arabic
Bahrain|Manama|Asia|dinar|Arabic
Cameroon|Yaounde|Africa|franc|French and English
Ivory Coast|Yamoussoukro|Africa|franc|French
Chad|N'Djamena|Africa|franc|French and Arabic
Gabon|Libreville|Africa|franc|French
Togo|Lome|Africa|franc|French
Benin|Porto-Novo|Africa|franc|French
Guinea|Conakry|Africa|franc|French
Liberia|Monrovia|Africa|dollar|English
Sierra Leone|Freetown|Africa|leone|English
Malawi|Lilongwe|Africa|kwacha|English and Chichewa
Mauritius|Port Louis|Africa|rupee|English and French
Bolivia|Sucre|South America|boliviano|Spanish and Quechua
Guyana|Georgetown|South America|dollar|English
Suriname|Paramaribo|South America|dollar|Dutch
El Salvador|San Salvador|North America|dollar|Spanish
the Dominican Republic|Santo Domingo|North America|peso|Spanish
the Bahamas|Nassau|North America|dollar|English
Barbados|Bridgetown|North America|dollar|English
Belize|Belmopan|North America|dollar|English
Trinidad and Tobago|Port of Spain|North America|dollar|English
Samoa|Apia|Oceania|tala|Samoan and English
""", "name", "capital", "continent", "currency", "language")

ELEMENTS = [(n, s, int(z)) for n, s, z in (e.split() for e in """
hydrogen H 1; helium He 2; lithium Li 3; beryllium Be 4; boron B 5; carbon C 6; nitrogen N 7;
oxygen O 8; fluorine F 9; neon Ne 10; sodium Na 11; magnesium Mg 12; aluminium Al 13; silicon Si 14;
phosphorus P 15; sulfur S 16; chlorine Cl 17; argon Ar 18; potassium K 19; calcium Ca 20;
titanium Ti 22; chromium Cr 24; manganese Mn 25; iron Fe 26; cobalt Co 27; nickel Ni 28;
copper Cu 29;
zinc Zn 30; arsenic As 33; bromine Br 35; krypton Kr 36; silver Ag 47; tin Sn 50; iodine I 53;
xenon Xe 54; tungsten W 74; platinum Pt 78; gold Au 79; mercury Hg 80; lead Pb 82; radon Rn 86;
uranium U 92""".replace("\n", " ").split(";"))]

PLANETS = _words("Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune")

ORDINALS = _words(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth")

# name | plural | kind | legs | sound (verb) | young | food
ANIMALS = _rows(
    """
dog|dogs|mammal|four|barks|puppy|meat
cat|cats|mammal|four|meows|kitten|meat
cow|cows|mammal|four|moos|calf|grass
horse|horses|mammal|four|neighs|foal|grass
sheep|sheep|mammal|four|bleats|lamb|grass
goat|goats|mammal|four|bleats|kid|grass
pig|pigs|mammal|four|oinks|piglet|plants and animals
lion|lions|mammal|four|roars|cub|meat
tiger|tigers|mammal|four|roars|cub|meat
bear|bears|mammal|four|growls|cub|plants and animals
wolf|wolves|mammal|four|howls|pup|meat
fox|foxes|mammal|four|barks|kit|plants and animals
rabbit|rabbits|mammal|four|squeaks|kit|plants
mouse|mice|mammal|four|squeaks|pup|seeds
elephant|elephants|mammal|four|trumpets|calf|plants
deer|deer|mammal|four|bellows|fawn|plants
kangaroo|kangaroos|mammal|-|grunts|joey|grass
monkey|monkeys|mammal|-|chatters|infant|fruit
whale|whales|mammal|no|sings|calf|krill and fish
dolphin|dolphins|mammal|no|clicks|calf|fish
bat|bats|mammal|-|squeaks|pup|insects
duck|ducks|bird|two|quacks|duckling|plants and insects
hen|hens|bird|two|clucks|chick|seeds
rooster|roosters|bird|two|crows|chick|seeds
goose|geese|bird|two|honks|gosling|grass
owl|owls|bird|two|hoots|owlet|mice
eagle|eagles|bird|two|screeches|eaglet|meat
swan|swans|bird|two|hisses|cygnet|water plants
penguin|penguins|bird|two|honks|chick|fish
crow|crows|bird|two|caws|chick|plants and animals
snake|snakes|reptile|no|hisses|hatchling|meat
crocodile|crocodiles|reptile|four|growls|hatchling|meat
turtle|turtles|reptile|four|hisses|hatchling|plants
lizard|lizards|reptile|four|hisses|hatchling|insects
frog|frogs|amphibian|four|croaks|tadpole|insects
salmon|salmon|fish|no|makes no sound|fry|small fish
shark|sharks|fish|no|makes no sound|pup|meat
bee|bees|insect|six|buzzes|larva|nectar
ant|ants|insect|six|makes no sound|larva|seeds and insects
butterfly|butterflies|insect|six|makes no sound|caterpillar|nectar
spider|spiders|arachnid|eight|makes no sound|spiderling|insects
octopus|octopuses|mollusc|-|makes no sound|larva|crabs
""", "name", "plural", "kind", "legs", "sound", "young", "food")

OPPOSITES = _pairs("""
hot=cold, big=small, tall=short, fast=slow, happy=sad, light=dark, hard=soft, wet=dry, old=young,
rich=poor, strong=weak, clean=dirty, full=empty, open=closed, early=late, high=low, near=far,
good=bad, right=wrong, true=false, loud=quiet, heavy=light, thick=thin, wide=narrow, deep=shallow,
sweet=sour, smooth=rough, sharp=blunt, easy=difficult, cheap=expensive, safe=dangerous,
brave=afraid,
kind=cruel, polite=rude, awake=asleep, alive=dead, up=down, left=right, in=out, over=under,
before=after, above=below, inside=outside, front=back, top=bottom, day=night, summer=winter,
north=south, east=west, love=hate, win=lose, buy=sell, give=take, push=pull, start=stop,
arrive=leave, remember=forget, laugh=cry, always=never, more=less, many=few, first=last,
friend=enemy, question=answer, war=peace, begin=end, increase=decrease, ancient=modern,
beautiful=ugly, bright=dim, calm=nervous, lazy=busy, simple=complicated, straight=crooked,
public=private, same=different, success=failure, victory=defeat, warm=cool, with=without""")

SYNONYMS = _pairs("""
happy=glad, big=large, small=little, fast=quick, smart=clever, begin=start, end=finish, angry=mad,
beautiful=pretty, sad=unhappy, scared=afraid, tired=sleepy, quiet=silent, rich=wealthy, sick=ill,
hard=difficult, easy=simple, shout=yell, speak=talk, help=assist, buy=purchase, choose=select,
gift=present, road=street, house=home, strange=odd, brave=courageous, funny=amusing, rapid=swift,
correct=right""")

COLOURS = _pairs("""
the sky=blue, grass=green, snow=white, blood=red, a banana=yellow, a lemon=yellow, coal=black,
a ripe tomato=red, a carrot=orange, the sun=yellow, milk=white, a raven=black, an emerald=green,
a ruby=red, chocolate=brown, a frog=green, a flamingo=pink, a strawberry=red, salt=white,
a polar bear=white, a pumpkin=orange, an elephant=grey, a plum=purple, a leaf=green, the sea=blue"""
                 )

MIXES = [("red", "yellow", "orange"), ("blue", "yellow", "green"), ("red", "blue", "purple"),
         ("red", "white", "pink"), ("black", "white", "grey")]

DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = _words("January February March April May June July August September October November "
                "December")
MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
SEASONS = _words("spring summer autumn winter")
NUMBERS = _words("zero one two three four five six seven eight nine ten eleven twelve thirteen "
                 "fourteen fifteen sixteen seventeen eighteen nineteen twenty")
TENS = _words("zero ten twenty thirty forty fifty sixty seventy eighty ninety")

# unit | how many | of what
UNITS = _rows(
    """
a minute|60|seconds
an hour|60|minutes
a day|24|hours
a week|7|days
a year|12|months
a leap year|366|days
a normal year|365|days
a decade|10|years
a century|100|years
a millennium|1000|years
a dozen|12|pieces
a kilometre|1000|metres
a metre|100|centimetres
a centimetre|10|millimetres
a kilogram|1000|grams
a ton|1000|kilograms
a litre|1000|millilitres
a foot|12|inches
a yard|3|feet
a byte|8|bits
a kilobyte|1024|bytes
a fortnight|14|days
a right angle|90|degrees
a full circle|360|degrees
""", "unit", "count", "of")

# shape | sides
SHAPES = _pairs("a triangle=3, a square=4, a rectangle=4, a pentagon=5, a hexagon=6, a heptagon=7, "
                "an octagon=8")

# work | who | what was done
WORKS = _rows(
    """
Romeo and Juliet|William Shakespeare|wrote
Hamlet|William Shakespeare|wrote
Don Quixote|Miguel de Cervantes|wrote
War and Peace|Leo Tolstoy|wrote
Faust|Johann Wolfgang von Goethe|wrote
Oliver Twist|Charles Dickens|wrote
Pride and Prejudice|Jane Austen|wrote
Frankenstein|Mary Shelley|wrote
The Divine Comedy|Dante Alighieri|wrote
The Odyssey|Homer|wrote
Alice in Wonderland|Lewis Carroll|wrote
Pinocchio|Carlo Collodi|wrote
The Jungle Book|Rudyard Kipling|wrote
Treasure Island|Robert Louis Stevenson|wrote
Moby Dick|Herman Melville|wrote
Dracula|Bram Stoker|wrote
the Mona Lisa|Leonardo da Vinci|painted
The Starry Night|Vincent van Gogh|painted
Guernica|Pablo Picasso|painted
The Night Watch|Rembrandt|painted
The Scream|Edvard Munch|painted
The Magic Flute|Wolfgang Amadeus Mozart|composed
The Four Seasons|Antonio Vivaldi|composed
the Moonlight Sonata|Ludwig van Beethoven|composed
Swan Lake|Pyotr Tchaikovsky|composed
the telephone|Alexander Graham Bell|invented
the light bulb|Thomas Edison|invented
dynamite|Alfred Nobel|invented
the printing press|Johannes Gutenberg|invented
penicillin|Alexander Fleming|discovered
radium|Marie and Pierre Curie|discovered
the law of gravity|Isaac Newton|discovered
the theory of relativity|Albert Einstein|developed
the theory of evolution|Charles Darwin|developed
the periodic table|Dmitri Mendeleev|developed
the World Wide Web|Tim Berners-Lee|invented
""", "work", "who", "verb")

# landmark | city or region | country
LANDMARKS = _rows(
    """
the Eiffel Tower|Paris|France
the Colosseum|Rome|Italy
Big Ben|London|the United Kingdom
the Brandenburg Gate|Berlin|Germany
the Acropolis|Athens|Greece
the Great Pyramid|Giza|Egypt
the Taj Mahal|Agra|India
the Statue of Liberty|New York|the United States
the Golden Gate Bridge|San Francisco|the United States
the Opera House|Sydney|Australia
the Kremlin|Moscow|Russia
the Forbidden City|Beijing|China
the Leaning Tower|Pisa|Italy
the Alhambra|Granada|Spain
the Little Mermaid|Copenhagen|Denmark
the Hagia Sophia|Istanbul|Turkey
Machu Picchu|the Andes|Peru
the Louvre|Paris|France
the White House|Washington, D.C.|the United States
Petra|the desert|Jordan
""", "name", "place", "country")

# English | French | Spanish | German | Italian
TRANSLATIONS = _rows(
    """
hello|bonjour|hola|hallo|ciao
goodbye|au revoir|adiós|auf Wiedersehen|arrivederci
thank you|merci|gracias|danke|grazie
please|s'il vous plaît|por favor|bitte|per favore
yes|oui|sí|ja|sì
no|non|no|nein|no
water|eau|agua|Wasser|acqua
bread|pain|pan|Brot|pane
milk|lait|leche|Milch|latte
wine|vin|vino|Wein|vino
apple|pomme|manzana|Apfel|mela
house|maison|casa|Haus|casa
tree|arbre|árbol|Baum|albero
sun|soleil|sol|Sonne|sole
moon|lune|luna|Mond|luna
star|étoile|estrella|Stern|stella
sea|mer|mar|Meer|mare
dog|chien|perro|Hund|cane
cat|chat|gato|Katze|gatto
horse|cheval|caballo|Pferd|cavallo
bird|oiseau|pájaro|Vogel|uccello
fish|poisson|pez|Fisch|pesce
friend|ami|amigo|Freund|amico
mother|mère|madre|Mutter|madre
father|père|padre|Vater|padre
child|enfant|niño|Kind|bambino
book|livre|libro|Buch|libro
school|école|escuela|Schule|scuola
red|rouge|rojo|rot|rosso
blue|bleu|azul|blau|blu
green|vert|verde|grün|verde
white|blanc|blanco|weiß|bianco
black|noir|negro|schwarz|nero
one|un|uno|eins|uno
two|deux|dos|zwei|due
three|trois|tres|drei|tre
day|jour|día|Tag|giorno
night|nuit|noche|Nacht|notte
love|amour|amor|Liebe|amore
city|ville|ciudad|Stadt|città
good morning|bonjour|buenos días|guten Morgen|buongiorno
good night|bonne nuit|buenas noches|gute Nacht|buona notte
I love you|je t'aime|te quiero|ich liebe dich|ti amo
how are you|comment ça va|cómo estás|wie geht es dir|come stai
excuse me|excusez-moi|perdón|Entschuldigung|mi scusi
welcome|bienvenue|bienvenido|willkommen|benvenuto
cheese|fromage|queso|Käse|formaggio
coffee|café|café|Kaffee|caffè
tea|thé|té|Tee|tè
beer|bière|cerveza|Bier|birra
flower|fleur|flor|Blume|fiore
man|homme|hombre|Mann|uomo
woman|femme|mujer|Frau|donna
heart|cœur|corazón|Herz|cuore
world|monde|mundo|Welt|mondo
good|bon|bueno|gut|buono
big|grand|grande|groß|grande
small|petit|pequeño|klein|piccolo
today|aujourd'hui|hoy|heute|oggi
tomorrow|demain|mañana|morgen|domani
""", "English", "French", "Spanish", "German", "Italian")

# thing = what it is; its opposite is what it is not
PROPERTIES = _pairs("""
the sun=hot, fire=hot, ice=cold, snow=cold, sugar=sweet, honey=sweet, a lemon=sour, an elephant=big,
a mouse=small, an ant=small, a feather=light, a stone=hard, a pillow=soft, the night=dark,
a diamond=hard,
a turtle=slow, a cheetah=fast, a giraffe=tall, the ocean=deep, the desert=dry, water=wet,
a needle=sharp,
a whale=big, a rabbit=fast, a baby=young, gold=expensive, a lion=strong, the moon=far""")

RHYMES = _pairs("""
cat=hat, dog=fog, house=mouse, tree=free, night=light, moon=spoon, star=car, day=play, book=look,
cake=lake, fish=dish, king=ring, bear=chair, rain=train, snow=show, sun=fun, wall=ball, bed=red,
box=fox,
boat=coat, sky=fly, door=floor, hand=sand, nose=rose, bee=sea, pen=ten, town=crown, boy=toy""")
# From small to big.
SIZES = _words(
    "ant bee butterfly mouse frog rabbit cat fox dog sheep lion cow horse elephant whale")
FLYERS = _words("bat duck goose owl eagle swan crow bee butterfly")
NO_FLYERS = _words(
    "dog cat cow horse sheep pig lion tiger bear wolf elephant whale snake frog shark "
    "rabbit mouse turtle crocodile spider")

PLURALS = _pairs("""
child=children, man=men, woman=women, foot=feet, tooth=teeth, goose=geese, mouse=mice,
person=people,
ox=oxen, leaf=leaves, wolf=wolves, knife=knives, life=lives, wife=wives, half=halves, shelf=shelves,
loaf=loaves, city=cities, baby=babies, story=stories, country=countries, family=families, fly=flies,
party=parties, box=boxes, fox=foxes, bus=buses, dress=dresses, watch=watches, dish=dishes,
church=churches, potato=potatoes, tomato=tomatoes, hero=heroes, sheep=sheep, fish=fish, deer=deer,
cat=cats, dog=dogs, book=books, car=cars, house=houses, tree=trees, apple=apples, friend=friends,
table=tables, chair=chairs, door=doors, window=windows, river=rivers, mountain=mountains,
ship=ships,
bird=birds, star=stars, flower=flowers, letter=letters, song=songs, boy=boys, girl=girls,
king=kings,
queen=queens, day=days, key=keys, toy=toys, night=nights, road=roads, hand=hands, school=schools""")

# base = past
PAST = _pairs("""
go=went, see=saw, eat=ate, drink=drank, run=ran, come=came, give=gave, take=took, make=made,
say=said,
tell=told, think=thought, know=knew, find=found, get=got, have=had, do=did, be=was, write=wrote,
read=read, speak=spoke, sing=sang, swim=swam, fly=flew, drive=drove, ride=rode, sleep=slept,
sit=sat,
stand=stood, buy=bought, sell=sold, bring=brought, catch=caught, teach=taught, fight=fought,
feel=felt, keep=kept, leave=left, lose=lost, meet=met, pay=paid, send=sent, build=built,
break=broke,
choose=chose, begin=began, draw=drew, fall=fell, grow=grew, hear=heard, hold=held, throw=threw,
win=won, wake=woke, walk=walked, talk=talked, play=played, work=worked, jump=jumped, look=looked,
like=liked, love=loved, live=lived, dance=danced, open=opened, close=closed, start=started,
stop=stopped, plan=planned, cry=cried, try=tried, carry=carried, study=studied, help=helped,
ask=asked, answer=answered, cook=cooked, wash=washed, paint=painted, laugh=laughed""")

LISTS = {
    "fruits": _words("apple banana cherry orange pear grape plum peach lemon melon"),
    "vegetables": _words("carrot potato tomato onion cabbage pea bean spinach pumpkin cucumber"),
    "animals": _words("dog cat horse cow lion tiger bear rabbit fox elephant"),
    "birds": _words("eagle owl duck swan crow penguin sparrow parrot robin seagull"),
    "colours": _words("red blue green yellow orange purple pink brown black white"),
    "countries": _words("France Germany Italy Spain Japan China India Brazil Canada Egypt"),
    "cities": _words("Paris London Rome Berlin Tokyo Madrid Cairo Vienna Oslo Athens"),
    "planets": PLANETS,
    "metals": _words("gold silver iron copper zinc tin lead nickel platinum aluminium"),
    "musical instruments": _words(
        "piano guitar violin drum flute trumpet cello harp clarinet organ"),
    "sports": _words("football tennis swimming running boxing hockey golf rowing cycling skiing"),
    "jobs": _words("doctor teacher farmer baker driver nurse cook pilot painter builder"),
    "drinks": _words("water milk tea coffee juice lemonade wine beer cocoa cider"),
    "clothes": _words("shirt trousers shoes hat coat dress skirt socks gloves scarf"),
    "tools": _words("hammer saw screwdriver drill axe spade rake chisel ruler knife"),
    "trees": _words("oak pine birch maple willow beech ash cedar elm fir"),
    "flowers": _words("rose tulip daisy lily violet sunflower poppy orchid iris daffodil"),
    "insects": _words("bee ant fly butterfly beetle wasp mosquito moth grasshopper ladybird"),
    "continents": _words("Africa Antarctica Asia Europe North_America Oceania South_America"),
    "oceans": [
        "the Pacific Ocean", "the Atlantic Ocean", "the Indian Ocean", "the Southern Ocean",
        "the Arctic Ocean"
    ],
    "seasons": SEASONS,
    "languages": _words(
        "English French German Spanish Italian Chinese Japanese Arabic Russian Hindi"),
    "vehicles": _words("car bus train bicycle ship plane tram truck motorcycle boat"),
    "rooms": _words(
        "kitchen bedroom bathroom living_room dining_room office hall cellar attic garage"),
    "shapes": _words("circle square triangle rectangle pentagon hexagon oval star cube sphere"),
    "parts of the body": _words("head arm leg hand foot eye ear nose mouth knee"),
}

NAMES_F = _words(
    "Anna Maria Sara Lena Emma Julia Nina Clara Alice Eva Lucy Mia Olga Rosa Ida Hanna "
    "Laura Kate Ella Zoe Ruth Vera Marta Iris")
NAMES_M = _words(
    "Tom Ben Max Paul Peter Jack Leo Oscar Felix Adam Hugo Ivan Karl Luke Mark Noah Otto "
    "Sam Tim Victor Alan David Emil George")
NAMES = NAMES_F + NAMES_M
# Large cities that are no capitals, with their countries.
OTHER_CITIES = _pairs("""
New York=the United States, San Francisco=the United States, Los Angeles=the United States,
Chicago=the United States, Boston=the United States, Sydney=Australia, Melbourne=Australia,
Mumbai=India,
Istanbul=Turkey, Milan=Italy, Naples=Italy, Venice=Italy, Florence=Italy, Munich=Germany,
Hamburg=Germany, Cologne=Germany, Barcelona=Spain, Seville=Spain, Lyon=France, Marseille=France,
Toronto=Canada, Montreal=Canada, Osaka=Japan, Kyoto=Japan, Shanghai=China, Geneva=Switzerland,
Zurich=Switzerland, Porto=Portugal, Manchester=the United Kingdom, Glasgow=the United Kingdom,
Edinburgh=the United Kingdom, Rio de Janeiro=Brazil, Casablanca=Morocco, Cape Town=South Africa""")
CITIES = sorted({c["capital"]
                 for c in COUNTRIES if " " not in c["capital"]} | {c
                                                                   for c, _ in OTHER_CITIES})
FOODS = _words("bread cheese soup pasta pizza rice salad fish cake honey apples pancakes eggs jam "
               "chocolate potatoes beans noodles")
HOBBIES = _words("reading swimming painting chess cooking dancing running singing gardening "
                 "photography football cycling climbing fishing hiking skiing")
PETS = _words("dog cat horse rabbit parrot hamster turtle goldfish")
PET_NAMES = _words(
    "Rex Bella Coco Milo Luna Rocky Daisy Charlie Nero Fluffy Pepper Ginger Simba Momo "
    "Bruno Lady")
NOUNS = _words(
    "book chair table lamp door window garden river mountain forest road bridge boat car "
    "train house castle tower school market shop kitchen bed cup plate spoon knife bag "
    "box key letter picture song story dream game ball hat coat shoe ring clock stone leaf "
    "flower tree cloud star moon sun rain snow wind fire water bread apple egg cake fish "
    "bird cat dog horse mouse king queen farmer doctor teacher baker child friend")
ADJECTIVES = _words(
    "red blue green yellow black white big small old new good bad happy sad warm cold "
    "soft hard quiet loud fast slow bright dark clean dirty sweet round tall long "
    "short heavy light strange lovely tiny huge")
# verb | third person | past: simple intransitive or transitive verbs for sentences
VERBS = [
    tuple(v.split("|")) for v in _words(
        "like|likes|liked see|sees|saw want|wants|wanted find|finds|found need|needs|needed "
        "buy|buys|bought draw|draws|drew paint|paints|painted bring|brings|brought take|takes|took "
        "love|loves|loved watch|watches|watched carry|carries|carried sell|sells|sold "
        "make|makes|made "
        "keep|keeps|kept hold|holds|held lose|loses|lost wash|washes|washed open|opens|opened")
]
COMMON = _words(
    "hello world good morning thank you please yes no happy birthday today tomorrow time year "
    "people life work place money music movie summer winter mother father brother sister home "
    "family city street coffee tea milk banana orange tomato potato computer phone paper pencil "
    "number word name question answer light night day week month love peace magic secret")
