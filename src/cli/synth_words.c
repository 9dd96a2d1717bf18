/* synth_words.c - the lists and the rules behind synth_words.h. */
#include "cli/synth_words.h"

#include <stdio.h>

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof *(a)))

static const char *const common[] = {
    "the",     "of",        "and",      "to",       "in",        "is",       "that",
    "it",      "was",       "for",      "on",       "are",       "as",       "with",
    "his",     "they",      "at",       "be",       "this",      "have",     "from",
    "or",      "one",       "had",      "by",       "word",      "but",      "not",
    "what",    "all",       "were",     "we",       "when",      "your",     "can",
    "said",    "there",     "use",      "an",       "each",      "which",    "she",
    "do",      "how",       "their",    "if",       "will",      "up",       "other",
    "about",   "out",       "many",     "then",     "them",      "these",    "so",
    "some",    "her",       "would",    "make",     "like",      "him",      "into",
    "time",    "has",       "look",     "two",      "more",      "write",    "go",
    "see",     "number",    "no",       "way",      "could",     "people",   "my",
    "than",    "first",     "water",    "been",     "call",      "who",      "its",
    "now",     "find",      "long",     "down",     "day",       "did",      "get",
    "come",    "made",      "may",      "part",     "user",      "model",    "system",
    "thought", "hello",     "world",    "name",     "value",     "text",     "over",
    "new",     "sound",     "take",     "only",     "little",    "work",     "know",
    "place",   "year",      "live",     "me",       "back",      "give",     "most",
    "very",    "after",     "thing",    "our",      "just",      "good",     "sentence",
    "man",     "think",     "say",      "great",    "where",     "help",     "through",
    "much",    "before",    "line",     "right",    "too",       "mean",     "old",
    "any",     "same",      "tell",     "boy",      "follow",    "came",     "want",
    "show",    "also",      "around",   "form",     "three",     "small",    "set",
    "put",     "end",       "does",     "another",  "well",      "large",    "must",
    "big",     "even",      "such",     "because",  "turn",      "here",     "why",
    "ask",     "went",      "men",      "read",     "need",      "land",     "different",
    "home",    "us",        "move",     "try",      "kind",      "hand",     "picture",
    "again",   "change",    "off",      "play",     "spell",     "air",      "away",
    "animal",  "house",     "point",    "page",     "letter",    "mother",   "answer",
    "found",   "study",     "still",    "learn",    "should",    "high",     "every",
    "near",    "add",       "food",     "between",  "own",       "below",    "country",
    "plant",   "last",      "school",   "father",   "keep",      "tree",     "never",
    "start",   "city",      "earth",    "eye",      "light",     "head",     "under",
    "story",   "saw",       "left",     "few",      "while",     "along",    "might",
    "close",   "something", "seem",     "next",     "hard",      "open",     "example",
    "begin",   "life",      "always",   "those",    "both",      "paper",    "together",
    "got",     "group",     "often",    "run",      "important", "until",    "children",
    "side",    "feet",      "car",      "mile",     "night",     "walk",     "white",
    "sea",     "began",     "grow",     "took",     "river",     "four",     "carry",
    "state",   "once",      "book",     "hear",     "stop",      "without",  "second",
    "late",    "miss",      "idea",     "enough",   "eat",       "face",     "watch",
    "far",     "real",      "almost",   "let",      "above",     "girl",     "mountain",
    "cut",     "young",     "talk",     "soon",     "list",      "song",     "being",
    "leave",   "family",    "return",   "int",      "char",      "void",     "const",
    "struct",  "static",    "function", "string",   "array",     "buffer",   "pointer",
    "memory",  "index",     "count",    "length",   "token",     "tensor",   "layer",
    "weight",  "matrix",    "vector",   "kernel",   "shader",    "file",     "error",
    "test",    "check",     "build",    "code",     "data",      "type",     "color",
    "music",   "wind",      "question", "fish",     "area",      "mark",     "horse",
    "problem", "complete",  "room",     "knew",     "since",     "ever",     "piece",
    "told",    "usual",     "friend",   "easy",     "heard",     "order",    "red",
    "door",    "sure",      "become",   "top",      "ship",      "across",   "today",
    "during",  "short",     "better",   "best",     "however",   "low",      "hour",
    "black",   "product",   "happen",   "whole",    "measure",   "remember", "early",
    "wave",    "reach",     "listen",   "rock",     "space",     "pass",     "fast",
    "hold",    "west",      "ground",   "interest", "reason",    "field",    "fine",
    "certain", "travel",    "wood",     "fire",     "upon",      "capital",  "France",
    "one",     "ten",       "simple",   "several",  "war",       "lay",      "against",
    "pattern", "slow",      "center",   "love",     "person",    "money",    "serve",
    "appear",  "road",      "map",      "rain",     "rule",      "govern",   "pull",
    "cold",    "notice",    "voice",    "unit",     "power",     "town",     "certain",
    "fly",     "fall",      "lead",     "cry",      "dark",      "machine",  "note",
    "wait",    "plan",      "figure",   "star",     "box",
};

static const char *const endings[] = {
    "s",     "ed",    "ing",  "er",    "ly",   "est",   "ion",  "tion", "ness", "ment",
    "able",  "ful",   "less", "ers",   "ings", "ity",   "ive",  "al",   "ous",  "ish",
    "ation", "ship",  "hood", "wise",  "ward", "like",  "ism",  "ist",  "ize",  "ized",
    "izing", "ments", "ible", "ingly", "edly", "fully", "ance", "ence", "ary",  "ory",
};

static const char *const beginnings[] = {
    "un", "re",    "in",    "dis",  "en",   "non", "over",  "mis", "sub", "pre",   "inter", "fore",
    "de", "trans", "super", "semi", "anti", "mid", "under", "out", "co",  "micro", "multi", "auto",
};

static const char *const marks[] = {
    "..",
    "...",
    "--",
    "---",
    "==",
    "===",
    "!=",
    "<=",
    ">=",
    "->",
    "=>",
    "::",
    "//",
    "/*",
    "*/",
    "()",
    "();",
    ");",
    "),",
    ").",
    "[]",
    "{}",
    "};",
    "\",",
    "\":",
    "='",
    "=\"",
    "\">",
    "</",
    "/>",
    "://",
    "**",
    "##",
    "###",
    "!!",
    "??",
    "?!",
    "++",
    "+=",
    "-=",
    "&&",
    "||",
    "<<",
    ">>",
    "'s",
    "'t",
    "'re",
    "'ll",
    "'ve",
    "n't",
    "__",
    "''",
    SYNTH_SPACE "(",
    SYNTH_SPACE "\"",
    SYNTH_SPACE "=",
    SYNTH_SPACE "-",
    SYNTH_SPACE "{",
    SYNTH_SPACE "==",
    SYNTH_SPACE "//",
    SYNTH_SPACE "'",
    SYNTH_SPACE "#",
    SYNTH_SPACE "*",
    SYNTH_SPACE "&",
    SYNTH_SPACE "$",
    SYNTH_SPACE "[",
    SYNTH_SPACE "<",
    SYNTH_SPACE "+",
    SYNTH_SPACE "\xe2\x80\x9c",
    SYNTH_SPACE "\xe2\x80\x94",
};

static const char *const onsets[] = {
    "b",  "c",  "d",  "f",  "g",  "h",  "j",  "k",   "l",  "m",  "n",  "p",
    "r",  "s",  "t",  "v",  "w",  "z",  "br", "cl",  "cr", "dr", "fl", "gr",
    "pl", "pr", "qu", "sh", "sl", "sp", "st", "str", "th", "tr",
};

static const char *const vowels[] = { "a", "e", "i", "o", "u", "ea", "ai", "ee", "oo", "ou", "y" };

static const char *const codas[] = {
    "", "", "n", "r", "l", "s", "t", "m", "d", "nd", "nt", "ck", "st", "rt", "ng", "x", "ll", "rm",
};

static struct str put(struct synth_words *w, const char *space, const char *a, const char *b,
                      bool capital)
{
    int n = snprintf(w->text, sizeof w->text, "%s%s%s", space, a, b);
    char *first = &w->text[strlen(space)];
    if (capital && *first >= 'a' && *first <= 'z') *first = (char)(*first - 'a' + 'A');
    return (struct str) { w->text, (size_t)n };
}

/* Two or three syllables, most of them with a space in front, some with a capital. */
static struct str invent(struct synth_words *w)
{
    char word[64] = "";
    size_t n = 0;
    uint32_t n_syllables = 2 + rng_below(&w->rng, 4) / 3;
    for (uint32_t i = 0; i < n_syllables; i++)
        n += (size_t)snprintf(
            word + n, sizeof word - n, "%s%s%s", onsets[rng_below(&w->rng, COUNT(onsets))],
            vowels[rng_below(&w->rng, COUNT(vowels))], codas[rng_below(&w->rng, COUNT(codas))]);
    bool space = rng_below(&w->rng, 4) != 0;
    return put(w, space ? SYNTH_SPACE : "", word, "", rng_below(&w->rng, 8) == 0);
}

/* One more of a stage's n words: *k says which. Past the last the next stage begins. */
static bool step(struct synth_words *w, uint32_t n, uint32_t *k)
{
    *k = w->at++;
    if (*k < n) return true;
    w->stage++;
    w->at = 0;
    return false;
}

struct str synth_words_next(struct synth_words *w)
{
    const uint32_t n_common = COUNT(common), n_endings = COUNT(endings);
    uint32_t k;
    if (w->stage == 0 && step(w, n_common, &k)) return put(w, SYNTH_SPACE, common[k], "", false);
    if (w->stage == 1 && step(w, n_endings, &k)) return put(w, "", endings[k], "", false);
    if (w->stage == 2 && step(w, COUNT(marks), &k)) return put(w, "", marks[k], "", false);
    if (w->stage == 3 && step(w, n_common, &k)) return put(w, "", common[k], "", false);
    if (w->stage == 4 && step(w, n_common, &k)) return put(w, SYNTH_SPACE, common[k], "", true);
    if (w->stage == 5 && step(w, n_common * n_endings, &k))
        return put(w, SYNTH_SPACE, common[k / n_endings], endings[k % n_endings], false);
    if (w->stage == 6 && step(w, COUNT(beginnings) * n_common, &k))
        return put(w, SYNTH_SPACE, beginnings[k / n_common], common[k % n_common], false);
    return invent(w);
}
