/* unicode.c - properties of code points for \p{...}: general categories, and common scripts. */
#include "grammar/regex.h"

#include "grammar/unicode.def"

enum { N_CATEGORIES = 30, PAIRS = 30 };

/* Short and long names, and the categories of each, as bits. */
static const struct {
    const char *brief, *name;
    uint32_t categories;
} categories[] = {
    { "Lu", "Uppercase_Letter", 1 },
    { "Ll", "Lowercase_Letter", 2 },
    { "Lt", "Titlecase_Letter", 4 },
    { "LC", "Cased_Letter", 7 },
    { "Lm", "Modifier_Letter", 8 },
    { "Lo", "Other_Letter", 16 },
    { "L", "Letter", 31 },
    { "Mn", "Nonspacing_Mark", 1 << 5 },
    { "Mc", "Spacing_Mark", 1 << 6 },
    { "Me", "Enclosing_Mark", 1 << 7 },
    { "M", "Mark", 7 << 5 },
    { "Nd", "Decimal_Number", 1 << 8 },
    { "Nl", "Letter_Number", 1 << 9 },
    { "No", "Other_Number", 1 << 10 },
    { "N", "Number", 7 << 8 },
    { "Pc", "Connector_Punctuation", 1 << 11 },
    { "Pd", "Dash_Punctuation", 1 << 12 },
    { "Ps", "Open_Punctuation", 1 << 13 },
    { "Pe", "Close_Punctuation", 1 << 14 },
    { "Pi", "Initial_Punctuation", 1 << 15 },
    { "Pf", "Final_Punctuation", 1 << 16 },
    { "Po", "Other_Punctuation", 1 << 17 },
    { "P", "Punctuation", 127 << 11 },
    { "Sm", "Math_Symbol", 1 << 18 },
    { "Sc", "Currency_Symbol", 1 << 19 },
    { "Sk", "Modifier_Symbol", 1 << 20 },
    { "So", "Other_Symbol", 1 << 21 },
    { "S", "Symbol", 15 << 18 },
    { "Zs", "Space_Separator", 1 << 22 },
    { "Zl", "Line_Separator", 1 << 23 },
    { "Zp", "Paragraph_Separator", 1 << 24 },
    { "Z", "Separator", 7 << 22 },
    { "Cc", "Control", 1 << 25 },
    { "Cf", "Format", 1 << 26 },
    { "Cs", "Surrogate", 1 << 27 },
    { "Co", "Private_Use", 1 << 28 },
    { "Cn", "Unassigned", 1 << 29 },
    { "C", "Other", 31 << 25 },
    { "Assigned", "Assigned", (1 << 29) - 1 },
    { "Any", "Any", (1 << 30) - 1 },
};

static uint32_t read_number(const unsigned char **p)
{
    uint32_t v = 0, shift = 0;
    do v |= (uint32_t)(**p & 127) << shift, shift += 7;
    while (*(*p)++ & 128);
    return v;
}

static void add_categories(struct store *s, uint32_t wanted, struct vec *set)
{
    const unsigned char *p = category_runs, *end = p + sizeof category_runs;
    for (uint32_t cp = 0; p < end;) {
        uint32_t category = *p & 31, n = *p >> 5;
        p++;
        if (!n) n = read_number(&p);
        if (category != PAIRS) {
            if (wanted >> category & 1) set_add(s, set, cp, cp + n - 1);
            cp += n;
            continue;
        }
        for (; n > 0; n--, cp += 2)
            if (wanted & 3) set_add(s, set, cp + !(wanted & 1), cp + (wanted >> 1 & 1));
    }
    set_tidy(s, set);
}

static bool add_script(struct store *s, struct str name, struct vec *set)
{
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        if (!str_is(name, scripts[i].name)) continue;
        const unsigned char *p = scripts[i].ranges;
        for (uint32_t cp = 0;;) {
            uint32_t gap = read_number(&p), n = read_number(&p);
            if (n == 0) return true;
            set_add(s, set, cp + gap, cp + gap + n - 1);
            cp += gap + n;
        }
    }
    return false;
}

/* The value behind "key=", if that is how the name begins. */
static bool after(struct str *name, const char *key)
{
    if (!str_starts(*name, key)) return false;
    *name = (struct str) { name->p + strlen(key), name->n - strlen(key) };
    return true;
}

bool unicode_property(struct store *s, struct str name, struct vec *set)
{
    if (after(&name, "Script=") || after(&name, "sc=")) return add_script(s, name, set);
    if (!after(&name, "General_Category=") && !after(&name, "gc=") && str_is(name, "ASCII")) {
        set_add(s, set, 0, 127);
        return true;
    }
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++) {
        if (!str_is(name, categories[i].brief) && !str_is(name, categories[i].name)) continue;
        add_categories(s, categories[i].categories, set);
        return true;
    }
    return false;
}
