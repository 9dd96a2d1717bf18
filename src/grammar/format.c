/* format.c - the formats of JSON Schema as patterns of whole texts.
 *
 * A pattern is put together from pieces: $X stands for piece X. $U and $V are what the
 * international forms of addresses allow beyond ASCII, and empty for the others.
 */
#include "grammar/regex.h"
#include "grammar/schema.h"

static const struct {
    char name;
    const char *text;
} pieces[] = {
    { 'X', "[0-9A-Fa-f]" },
    /* RFC 3339; a leap second only at the end of a day in UTC */
    { 'L', "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)" },
    { 'D', "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|"
           "(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))|$L-02-29)" },
    { 'C', "(?:[01]\\d|2[0-3]):[0-5]\\d" },
    { 'T', "(?:$C:[0-5]\\d(?:\\.\\d+)?(?:[Zz]|[+-]$C)|"
           "23:59:60(?:\\.\\d+)?(?:[Zz]|[+-]00:00))" },
    { 'S', "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S)" }, /* a part of a duration */
    /* RFC 1123. The third and fourth character are no hyphens: such names are encoded international
     * ones, and whether those are valid no pattern can say. */
    { 'N', "(?!.{2}--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?" },
    { '4', "$O(?:\\.$O){3}" },
    { 'O', "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)" },
    { 'H', "$X{1,4}" },
    { 'I', "(?:$H:$H|$4)" },
    { '6', "(?:(?:$H:){6}$I|::(?:$H:){5}$I|(?:$H)?::(?:$H:){4}$I|(?:(?:$H:)?$H)?::(?:$H:){3}$I|"
           "(?:(?:$H:){0,2}$H)?::(?:$H:){2}$I|(?:(?:$H:){0,3}$H)?::$H:$I|(?:(?:$H:){0,4}$H)?::$I|"
           "(?:(?:$H:){0,5}$H)?::$H|(?:(?:$H:){0,6}$H)?::)" },
    /* RFC 5321 and 6531 */
    { 'A', "[A-Za-z0-9!#$%&'*+/=?^_`{|}~$U-]+" },
    { 'M', "[A-Za-z0-9$U](?:[A-Za-z0-9$U-]{0,61}[A-Za-z0-9$U])?" },
    { 'E', "(?:$A(?:\\.$A)*|\"(?:[ !#-\\[\\]-~$U]|\\\\[ -~])*\")"
           "@(?:$M(?:\\.$M)*|\\[(?:$4|IPv6:$6)\\])" },
    /* RFC 3986 and 3987 */
    { 'F', "!$&'()*+,;=A-Za-z0-9._~" },
    { 'Z', "(?:[:@$U$F-]|%$X$X)" },
    { 'P', "(?:/$Z*)*" },
    { 'R', "/(?:$Z+$P)?" },
    { 'G', "(?:[:$U$F-]|%$X$X)*" },
    { 'B', "//(?:$G@)?(?:\\[(?:$6|[vV]$X+\\.[:$F-]+)\\]|(?:[$U$F-]|%$X$X)*)(?::\\d*)?$P" },
    { 'Q', "(?:\\?(?:[/?$V]|$Z)*)?(?:#(?:[/?]|$Z)*)?" },
    { 'J', "[A-Za-z][A-Za-z0-9+.-]*:(?:$B|$R|$Z+$P|)$Q" },
    { 'K', "(?:$J|(?:$B|$R|(?:[@$U$F-]|%$X$X)+$P|)$Q)" },
    /* RFC 6901 and 6570 */
    { 'Y', "(?:/(?:[^~/]|~[01])*)*" },
    { 'W', "(?:\\w|%$X$X)+(?:\\.(?:\\w|%$X$X)+)*(?::[1-9]\\d{0,3}|\\*)?" },
};

static const char ucs[] =
    "\\u{a0}-\\u{d7ff}\\u{f900}-\\u{fdcf}\\u{fdf0}-\\u{ffef}\\u{10000}-\\u{1fffd}"
    "\\u{20000}-\\u{2fffd}\\u{30000}-\\u{3fffd}\\u{40000}-\\u{4fffd}\\u{50000}-\\u{5fffd}"
    "\\u{60000}-\\u{6fffd}\\u{70000}-\\u{7fffd}\\u{80000}-\\u{8fffd}\\u{90000}-\\u{9fffd}"
    "\\u{a0000}-\\u{afffd}\\u{b0000}-\\u{bfffd}\\u{c0000}-\\u{cfffd}\\u{d0000}-\\u{dfffd}"
    "\\u{e1000}-\\u{efffd}";
static const char private_use[] = "\\u{e000}-\\u{f8ff}\\u{f0000}-\\u{ffffd}\\u{100000}-\\u{10fffd}";

static const struct {
    const char *name, *pattern, *more, *private_use;
} formats[] = {
    { "date", "$D", "", "" },
    { "time", "$T", "", "" },
    { "date-time", "$D[Tt]$T", "", "" },
    { "duration", "P(?:\\d+W|(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)(?:$S)?|$S)", "",
      "" },
    { "email", "$E", "", "" },
    { "idn-email", "$E", "\\u{80}-\\u{10ffff}", "" },
    { "hostname", "(?=.{1,253}$)$N(?:\\.$N)*", "", "" },
    { "ipv4", "$4", "", "" },
    { "ipv6", "$6", "", "" },
    { "uri", "$J", "", "" },
    { "uri-reference", "$K", "", "" },
    { "iri", "$J", ucs, private_use },
    { "iri-reference", "$K", ucs, private_use },
    { "uuid", "$X{8}-$X{4}-$X{4}-$X{4}-$X{12}", "", "" },
    { "uri-template", "(?:[^\\x00-\\x20\"'%<>\\\\^`{|}]|%$X$X|\\{[+#./;?&=,!@|]?$W(?:,$W)*\\})*",
      "", "" },
    { "json-pointer", "$Y", "", "" },
    { "relative-json-pointer", "(?:0|[1-9]\\d*)(?:#|$Y)", "", "" },
};

static void expand(struct buf *b, const char *pattern, const char *more, const char *last)
{
    for (const char *c = pattern; *c; c++) {
        const char *piece = NULL;
        if (c[0] == '$' && c[1] == 'U') piece = more;
        if (c[0] == '$' && c[1] == 'V') piece = last;
        for (size_t i = 0; c[0] == '$' && i < sizeof pieces / sizeof *pieces && !piece; i++)
            if (pieces[i].name == c[1]) piece = pieces[i].text;
        if (piece) {
            expand(b, piece, more, last);
            c++;
        } else {
            buf_putc(b, *c);
        }
    }
}

node format_text(struct store *s, struct str name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (!str_is(name, formats[i].name)) continue;
        struct buf b = { 0 };
        expand(&b, formats[i].pattern, formats[i].more, formats[i].private_use);
        if (b.failed) store_fail(s, BZ_ERR_MEMORY, "out of memory for a grammar");
        node x = regex_whole(s, buf_str(&b));
        buf_free(&b);
        return x;
    }
    if (str_is(name, "idn-hostname") || str_is(name, "regex"))
        store_fail(s, BZ_ERR_UNSUPPORTED, "\"%.*s\" is not supported", STR_ARG(name));
    return 0;
}
