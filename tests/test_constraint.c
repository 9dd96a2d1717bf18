/* test_constraint.c - answers written by a guide: through its phases, token by token over a real
 * vocabulary. A mask allows just the tokens that the guide takes, what must come is allowed, and
 * every answer ends. */
#include "guide_fixture.h"

/* ---- phases ---- */

#define DATE "\"schema\":{\"type\":\"string\",\"format\":\"date\"}"

static const char *const constraints[] = {
    "{" DATE "}",
    "{" DATE ",\"thinking\":true}",
    "{" DATE ",\"in_thought\":true}",
    "{\"json\":true,\"thinking\":true}",
    "{\"regex\":\"[a-c]{2,5}-(caf\xc3\xa9|\\\\d{3})\",\"thinking\":true}",
    "{\"gbnf\":\"root ::= (\\\"ab\\\" | \\\"\xe2\x82\xac\\\" [0-9])+\"}",
};
enum { N_CONSTRAINTS = sizeof constraints / sizeof *constraints };

static void check_all_walks(void)
{
    struct rng rng = { .state = 3 };
    for (size_t i = 0; i < N_CONSTRAINTS; i++) check_walk(constraints[i], &rng, 6);
}

static void check_all_memory(void)
{
    struct rng rng = { .state = 9 };
    for (size_t i = 0; i < N_CONSTRAINTS; i++) {
        struct constraint *c = NULL;
        struct ids path = { 0 };
        CHECK(open_constraint(&c, constraints[i], NULL) == BZ_OK);
        walk(c, &rng, &path, 4);
        constraint_close(c);
        check_memory(constraints[i], &path);
        ids_free(&path);
    }
}

/* Many walks, which may be long. */
static void check_ends(void)
{
    struct rng rng = { .state = 5 };
    for (size_t i = 0; i < N_CONSTRAINTS; i++) {
        struct constraint *c = NULL;
        int n_ended = 0;
        CHECK(open_constraint(&c, constraints[i], NULL) == BZ_OK);
        for (int k = 0; k < 40; k++) {
            struct ids path = { 0 };
            n_ended += walk(c, &rng, &path, 200);
            ids_free(&path);
        }
        CHECK_MSG(n_ended >= 10, "%s: %d of 40 walks ended", constraints[i], n_ended);
        constraint_close(c);
    }
}

/* Where a text of the chat format may go on by a special token. */
static void check_phases(void)
{
    static const struct {
        const char *how, *text;
        bool thought, thought_end, end;
    } cases[] = {
        { "{" DATE "}", "", false, false, false },
        { "{" DATE "}", "\"2024-02-29\"", false, false, true },
        { "{" DATE ",\"thinking\":true}", "", true, false, false },
        { "{" DATE ",\"thinking\":true}", "\"", false, false, false },
        { "{" DATE ",\"thinking\":true}", "<|channel>thought\nx", false, true, false },
        { "{" DATE ",\"thinking\":true}", "<|channel>thought\n<channel|>", false, false, false },
        { "{" DATE ",\"in_thought\":true}", "", false, true, false },
        { "{" DATE ",\"in_thought\":true}", "x<channel|>\"2024-02-29\"", false, false, true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct constraint *c = NULL;
        struct bz_err err = { "" };
        struct ids path = { 0 };
        CHECK_MSG(open_constraint(&c, cases[i].how, &err) == BZ_OK, "%s", err.text);
        put_text(&path, cases[i].text);
        struct guide *g = guide_at(c, &path);
        uint32_t *mask = mask_at(g);
        CHECK_MSG(allows(mask, tokenizer_special(t, SPECIAL_CHANNEL)) == cases[i].thought,
                  "<|channel> after %s", cases[i].text);
        CHECK_MSG(allows(mask, tokenizer_special(t, SPECIAL_CHANNEL_END)) == cases[i].thought_end,
                  "<channel|> after %s", cases[i].text);
        CHECK_MSG(has_end(mask) == cases[i].end, "the end after %s", cases[i].text);
        for (int s = 0; s < N_SPECIAL; s++) {
            int32_t id = tokenizer_special(t, (enum special)s);
            bool known = s == SPECIAL_CHANNEL || s == SPECIAL_CHANNEL_END;
            if (id < 0 || known || tokenizer_is_end(t, id)) continue;
            CHECK_MSG(!allows(mask, id), "%.*s after %s", STR_ARG(tokenizer_text(t, id)),
                      cases[i].text);
        }
        free(mask);
        guide_close(g);
        ids_free(&path);
        constraint_close(c);
    }
}

/* What must come, as text, behind a text. */
static void check_forced_text(void)
{
    static const struct {
        const char *how, *before, *forced;
    } cases[] = {
        { "{\"schema\":{\"const\":\"one and only\"}}", "", "\"one and only\"" },
        { "{\"schema\":{\"const\":\"one and only\"}}", "\"one", " and only\"" },
        { "{\"schema\":{\"const\":\"one and only\"},\"thinking\":true}", "", "" },
        { "{\"schema\":{\"const\":\"one and only\"},\"thinking\":true}", "<|channel>x", "" },
        { "{\"schema\":{\"const\":1},\"thinking\":true}", "<|channel>x<channel|>", "1" },
        { "{\"regex\":\"a\xe2\x96\x81z\"}", "", "a" },
        { "{\"regex\":\"x?\"}", "", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct constraint *c = NULL;
        struct bz_err err = { "" };
        struct ids path = { 0 }, forced;
        const int32_t *ids = NULL;
        CHECK_MSG(open_constraint(&c, cases[i].how, &err) == BZ_OK, "%s", err.text);
        put_text(&path, cases[i].before);
        struct guide *g = guide_at(c, &path);
        forced = (struct ids) { 0 };
        CHECK_MSG(guide_forced(g, &ids, &forced.n, &err) == BZ_OK, "%s", err.text);
        for (size_t k = 0, n = forced.n; k < n; k++) {
            if (k == 0) forced.n = 0;
            ids_push(&forced, ids[k]);
        }
        struct buf text = text_of(&forced);
        buf_put(&text, "", 0);
        CHECK_MSG(str_is(buf_str(&text), cases[i].forced), "%s after \"%s\": \"%.*s\"",
                  cases[i].how, cases[i].before, STR_ARG(buf_str(&text)));
        buf_free(&text);
        ids_free(&forced);
        ids_free(&path);
        guide_close(g);
        constraint_close(c);
    }
}

static void check_refusals(void)
{
    static const struct {
        const char *how, *names;
    } cases[] = {
        { "[]", "object" },
        { "{}", "nothing" },
        { "{\"json\":true,\"regex\":\"a\"}", "one of" },
        { "{\"json\":1}", "json" },
        { "{\"regex\":1}", "regex" },
        { "{\"gbnf\":\"root ::= missing\"}", "missing" },
        { "{\"schema\":{\"type\":7}}", "type" },
        { "{\"json\":true,\"thinkng\":true}", "thinkng" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct constraint *c = NULL;
        struct bz_err err = { "" };
        CHECK_MSG(open_constraint(&c, cases[i].how, &err) != BZ_OK && !c, "%s was taken",
                  cases[i].how);
        CHECK_MSG(strstr(err.text, cases[i].names), "%s: %s", cases[i].how, err.text);
    }
}

int main(void)
{
    int64_t live = mem_live();
    if (!open_vocab()) return 1;
    TEST("what an answer cannot keep to is refused by name") check_refusals();
    TEST("special tokens come where the format has them") check_phases();
    TEST("what must come is tokenized, but for what could go on otherwise") check_forced_text();
    TEST("a mask allows what the guide takes, and what must come") check_all_walks();
    TEST("a walk through masks comes to an end") check_ends();
    TEST("any failed allocation is told, and leaks nothing") check_all_memory();
    close_vocab();
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
