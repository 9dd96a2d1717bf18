/* Patterns of LoRA configurations: the same answers as re.match(r"(.*\.)?(KEY)$", path). */
#include "io/pattern.h"

#include "check.h"

static const char q[] = "model.language_model.layers.12.self_attn.q_proj";

struct pattern_case {
    const char *pattern, *path;
    bool match;
};

static void test_answers(void)
{
    static const struct pattern_case cases[] = {
        { "q_proj", q, true },
        { "proj", q, false }, /* a tail starts at a component */
        { "self_attn.q_proj", q, true },
        { "self_attn", q, false },
        { "", q, false },
        { "", "a.", true },
        { "", "", true },
        { q, q, true },
        { "^q_proj", q, false },
        { "^q_proj", "q_proj", true },
        { "^model.*q_proj$", q, true },
        { ".*\\.q_proj", q, true },
        { "layers\\.12\\..*", q, true },
        { "layers\\.1\\..*", q, false },
        { "layers.\\d+.self_attn.[qkv]_proj", q, true },
        { "layers.(0|1|12).self_attn.(?:q|k)_proj", q, true },
        { "layers.(0|1|2).self_attn.(?:q|k)_proj", q, false },
        { "layers.1?2+.self_attn..*", q, true },
        { "layers.[0-9][^0-9].*", q, false },
        { "layers.[0-9][^a-z].*", q, true },
        { "q_pro?j|k_proj", q, true },
        { "k_proj|q_proj", q, true },
        { "(q_proj", q, false }, /* refused, see below */
        { "(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false },
        { "(a|a)*", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true },
        { "(a?)+?b*?", "aab", true },
        { "[]x]+", "]x]", true },
        { "[^]x]+", "]x]", false },
        { "[a-]+", "a-a", true },
        { "[\\d.]+", "1.2", true },
        { "\\w+\\W\\w+", "ab-cd", true },
        { "\\S+\\s\\S+", "ab cd", true },
        { "\\D+", "ab", true },
        { "\\D+", "a1", false },
        { "a$", "a", true },
        { "a$b", "ab", false },
        { "a||b", "", true },
        { "()", "x.", true },
    };
    TEST("patterns match as PEFT matches them")
    {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            bool hit = false;
            uint64_t work = 0;
            struct bz_err err = { "" };
            enum bz_status st = pattern_match_tail(&hit, str_of(cases[i].pattern),
                                                   str_of(cases[i].path), &work, &err);
            bool refused = strcmp(cases[i].pattern, "(q_proj") == 0;
            CHECK_MSG(st == (refused ? BZ_ERR_UNSUPPORTED : BZ_OK), "%s", cases[i].pattern);
            CHECK_MSG(hit == cases[i].match, "%s on %s", cases[i].pattern, cases[i].path);
        }
    }
}

static void test_refusals(void)
{
    TEST("what is outside the language is refused, never guessed")
    {
        static const char *const bad[] = { "a{2}", "(?=a)", "(?P<n>a)", "\\1", "\\b", "(a",    "a)",
                                           "[a",   "*a",    "a**",      "\\",  "+",   "[b-a]", "[",
                                           "[^",   "a\\",   "?",        "(?",  "a(*)" };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            bool hit = false;
            uint64_t work = 0;
            struct bz_err err = { "" };
            CHECK_MSG(pattern_match_tail(&hit, str_of(bad[i]), str_of("a"), &work, &err) ==
                          BZ_ERR_UNSUPPORTED,
                      "%s", bad[i]);
            CHECK(strstr(err.text, bad[i]));
        }
    }
    TEST("depth, work and length have limits")
    {
        struct buf b = { 0 };
        bool hit;
        uint64_t work = 0;
        struct bz_err err;
        for (int i = 0; i < 1000; i++) buf_putc(&b, '(');
        CHECK(pattern_match_tail(&hit, buf_str(&b), str_of("a"), &work, &err) ==
              BZ_ERR_UNSUPPORTED);
        b.n = 0;
        for (int i = 0; i < 30000; i++) buf_puts(&b, "a*");
        CHECK(pattern_match_tail(&hit, buf_str(&b), str_of("a"), &work, &err) ==
              BZ_ERR_UNSUPPORTED);
        b.n = 0;
        for (int i = 0; i < 254; i++) buf_putc(&b, 'a');
        CHECK(pattern_match_tail(&hit, str_of("a+"), buf_str(&b), &work, &err) == BZ_OK && hit);
        buf_putc(&b, 'a');
        CHECK(pattern_match_tail(&hit, str_of("a+"), buf_str(&b), &work, &err) == BZ_ERR_LIMIT);
        buf_free(&b);
    }
}

int main(void)
{
    test_answers();
    test_refusals();
    return check_done();
}
