/* data.c - see data.h. */
#include "train/data.h"

#include "base/json.h"
#include "base/rng.h"

static void example_free(struct example *e)
{
    mem_free(e->ids);
    mem_free(e->targets);
    mem_free(e->starts);
}

void dataset_free(struct dataset *d)
{
    for (size_t i = 0; i < d->n; i++) example_free(&d->examples[i]);
    mem_free(d->examples);
    *d = (struct dataset) { 0 };
}

/* ---- a conversation as text ---- */

/* {"prompt", "completion"} as messages. */
static enum bz_status as_messages(const struct json **out, const struct json *line,
                                  struct arena *arena, struct bz_err *err)
{
    struct str prompt = json_get_str(line, "prompt");
    struct str completion = json_get_str(line, "completion");
    if (!prompt.p || !completion.p)
        return fail(err, BZ_ERR_FORMAT,
                    "it needs \"messages\", or \"prompt\" and \"completion\" (texts)");
    struct buf text = { 0 };
    struct json *made;
    buf_puts(&text, "[{\"role\":\"user\",\"content\":");
    json_put_string(&text, prompt);
    buf_puts(&text, "},{\"role\":\"assistant\",\"content\":");
    json_put_string(&text, completion);
    buf_puts(&text, "}]");
    enum bz_status st = text.failed
                            ? fail_memory(err, text.n)
                            : json_parse(&made, (struct str) { text.data, text.n }, arena, err);
    if (st == BZ_OK) *out = made;
    buf_free(&text);
    return st;
}

/* The last element of a list, or NULL. */
static const struct json *last_of(const struct json *list)
{
    const struct json *last = list->child;
    while (last && last->next) last = last->next;
    return last;
}

/* All but the last element; the copies live in the arena. */
static struct json *without_last(const struct json *list, struct arena *arena)
{
    struct json *out = arena_alloc(arena, 1, sizeof *out);
    if (!out) return NULL;
    *out = *list;
    out->child = NULL;
    out->n = list->n - 1;
    struct json **at = &out->child;
    for (const struct json *j = list->child; j && j->next; j = j->next) {
        struct json *one = arena_alloc(arena, 1, sizeof *one);
        if (!one) return NULL;
        *one = *j;
        one->next = NULL;
        *at = one;
        at = &one->next;
    }
    return out;
}

/* Is `start` how m begins, marks and all? */
static bool begins_with(const struct marked *m, const struct marked *start)
{
    size_t n = start->text.n;
    if (m->text.n < n || m->n_marks < start->n_marks) return false;
    for (size_t i = 0; i < start->n_marks; i++)
        if (m->marks[i].at != start->marks[i].at || m->marks[i].which != start->marks[i].which)
            return false;
    return str_eq((struct str) { m->text.data, n }, buf_str(&start->text));
}

/* Forget the first n bytes. */
static void drop_front(struct marked *m, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n_marks; i++)
        if (m->marks[i].at >= n)
            m->marks[kept++] = (struct mark) { m->marks[i].at - n, m->marks[i].which };
    m->n_marks = kept;
    m->text.n -= n;
    memmove(m->text.data, m->text.data + n, m->text.n);
}

/* Render what a person would have seen up to the last answer, then that answer. The two are
 * rendered apart, because the prompt of a large model opens an empty thought that the history does
 * not have: training sees exactly what inference will. An answer within an open turn (after a
 * tool's answer) has no prompt: all of it is in *answer. */
static enum bz_status render(struct marked *prompt, struct marked *answer,
                             const struct json *messages, const struct json *tools,
                             enum chat_variant variant, struct arena *arena, struct bz_err *err)
{
    struct chat_options asks = { .variant = variant };
    struct chat_options history = { .variant = variant, .no_generation_prompt = true };
    struct marked before = { 0 };
    const struct json *shorter = without_last(messages, arena);
    enum bz_status st = shorter ? chat_render(&before, shorter, tools, history, NULL, err)
                                : fail_memory(err, messages->n * sizeof *messages);
    marked_put(&before, SPECIAL_TURN);
    buf_puts(&before.text, "model\n");
    if (st == BZ_OK) st = chat_render(answer, messages, tools, history, NULL, err);
    if (st == BZ_OK && before.text.failed) st = fail_memory(err, before.text.n);
    if (st == BZ_OK && begins_with(answer, &before)) {
        drop_front(answer, before.text.n);
        st = chat_render(prompt, shorter, tools, asks, NULL, err);
    }
    marked_free(&before);
    return st;
}

/* ---- a text as tokens and targets ---- */

/* The ids of "model" and a newline, which follow <|turn> where the model speaks. */
static bool opens_model_turn(const struct tokenizer *t, const int32_t *ids, size_t i, size_t n)
{
    struct str model = str_of("model"), newline = str_of("\n");
    return i + 2 < n && ids[i] == tokenizer_special(t, SPECIAL_TURN) &&
           str_eq(tokenizer_text(t, ids[i + 1]), model) &&
           str_eq(tokenizer_text(t, ids[i + 2]), newline);
}

/* targets[i] = ids[i + 1] inside of the model's turns, the closing token included. The first
 * n_prompt ids have opened a turn; what they already say in it (an empty thought) is given, not
 * learned. */
static uint32_t mark_targets(const struct tokenizer *t, const int32_t *ids, int32_t *targets,
                             uint32_t n, uint32_t n_prompt)
{
    bool speaks = false, listens = false; /* in a model's turn; in a tool's answer within it */
    uint32_t n_learned = 0, first = 0;    /* the turn's first token */
    uint32_t last_end = 0;                /* where the prompt's last finished turn ends */
    for (uint32_t i = 0; i < n_prompt; i++)
        if (ids[i] == tokenizer_special(t, SPECIAL_TURN_END)) last_end = i;
    for (uint32_t i = 0; i + 1 < n; i++) {
        int32_t next = ids[i + 1];
        targets[i] = -1;
        if (ids[i] == tokenizer_special(t, SPECIAL_RESPONSE_END)) listens = false;
        if (opens_model_turn(t, ids, i, n)) {
            speaks = true;
            first = i + 3;
        }
        if (next == tokenizer_special(t, SPECIAL_RESPONSE)) listens = true;
        bool given = i + 1 < first || (i + 1 < n_prompt && first > last_end);
        if (speaks && !listens && !given) {
            targets[i] = next;
            n_learned++;
        }
        if (next == tokenizer_special(t, SPECIAL_TURN_END)) speaks = listens = false;
    }
    targets[n - 1] = -1;
    return n_learned;
}

/* Prompt and answer are encoded apart, as they are when the model is asked. */
static enum bz_status make_example(struct example *out, const struct marked *prompt,
                                   const struct marked *answer, const struct dataset_options *o,
                                   struct bz_err *err)
{
    struct ids ids = { 0 };
    enum bz_status st = BZ_OK;
    if (prompt->text.n) st = tokenizer_encode_marked(o->tokenizer, prompt, false, &ids, err);
    uint32_t n_given = (uint32_t)ids.n;
    if (st == BZ_OK)
        st = tokenizer_encode_marked(o->tokenizer, answer, prompt->text.n > 0, &ids, err);
    int32_t *targets = st ? NULL : mem_alloc(ids.n, sizeof *targets);
    if (st == BZ_OK && !targets) st = fail_memory(err, ids.n * sizeof *targets);
    if (st == BZ_OK && ids.n > o->n_max)
        st = fail(err, BZ_ERR_LIMIT, "it has %zu tokens; the longest allowed is %u", ids.n,
                  o->n_max);
    uint32_t n_learned =
        st ? 0 : mark_targets(o->tokenizer, ids.data, targets, (uint32_t)ids.n, n_given);
    if (st == BZ_OK && !n_learned)
        st = fail(err, BZ_ERR_FORMAT, "there is no answer of the model in it to learn");
    if (st) {
        ids_free(&ids);
        mem_free(targets);
        return st;
    }
    *out = (struct example) {
        .ids = ids.data, .targets = targets, .n = (uint32_t)ids.n, .n_learned = n_learned
    };
    return BZ_OK;
}

static enum bz_status read_line(struct example *out, struct str line,
                                const struct dataset_options *o, struct bz_err *err)
{
    struct arena arena = { 0 };
    struct marked prompt = { 0 }, answer = { 0 };
    struct json *j;
    const struct json *messages = NULL;
    enum bz_status st = json_parse(&j, line, &arena, err);
    if (st == BZ_OK && j->type != JSON_OBJECT)
        st = fail(err, BZ_ERR_FORMAT, "it is no JSON object");
    if (st == BZ_OK && !(messages = json_get(j, "messages")))
        st = as_messages(&messages, j, &arena, err);
    if (st == BZ_OK && (messages->type != JSON_ARRAY || messages->n < 2))
        st =
            fail(err, BZ_ERR_FORMAT, "\"messages\" is a list of at least a question and an answer");
    if (st == BZ_OK) {
        struct str role = json_get_str(last_of(messages), "role");
        if (!str_is(role, "assistant") && !str_is(role, "model"))
            st = fail(err, BZ_ERR_FORMAT, "the last message is not the assistant's");
    }
    if (st == BZ_OK)
        st = render(&prompt, &answer, messages, json_get(j, "tools"), o->variant, &arena, err);
    if (st == BZ_OK) st = make_example(out, &prompt, &answer, o, err);
    marked_free(&prompt);
    marked_free(&answer);
    arena_free(&arena);
    return st;
}

/* ---- a file ---- */

static bool is_blank(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\r') return false;
    return true;
}

static enum bz_status push(struct dataset *d, const struct example *e, struct bz_err *err)
{
    if (d->n == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 64;
        struct example *grown = mem_grow(d->examples, cap, sizeof *grown);
        if (!grown) return fail_memory(err, cap * sizeof *grown);
        d->examples = grown;
        d->cap = cap;
    }
    d->examples[d->n++] = *e;
    d->n_tokens += e->n;
    d->n_learned += e->n_learned;
    return BZ_OK;
}

enum bz_status dataset_read(struct dataset *out, struct str jsonl, const char *name,
                            const struct dataset_options *o, struct bz_err *err)
{
    struct dataset d = { 0 };
    enum bz_status st = BZ_OK;
    uint32_t number = 0;
    for (size_t at = 0; at < jsonl.n && st == BZ_OK;) {
        size_t end = at;
        while (end < jsonl.n && jsonl.p[end] != '\n') end++;
        struct str line = { jsonl.p + at, end - at };
        at = end + 1;
        number++;
        if (is_blank(line)) continue;
        struct example e;
        struct bz_err why;
        st = read_line(&e, line, o, &why);
        if (st) {
            fail(err, st, "%s line %u: %.400s", name, number, why.text);
            break;
        }
        e.line = number;
        st = push(&d, &e, err);
        if (st) example_free(&e);
    }
    if (st == BZ_OK && !d.n) st = fail(err, BZ_ERR_FORMAT, "%s has no examples", name);
    if (st) dataset_free(&d);
    else *out = d;
    return st;
}

uint32_t dataset_longest(const struct dataset *d)
{
    uint32_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        if (d->examples[i].n > n) n = d->examples[i].n;
    return n;
}

/* ---- shares and packs ---- */

enum bz_status dataset_hold_back(struct dataset *held, struct dataset *from, double share,
                                 struct bz_err *err)
{
    size_t every = share > 0 && share <= 0.5 ? (size_t)(1 / share) : 0, kept = 0;
    if (every < 2 || from->n < every)
        return fail(err, BZ_ERR_ARGUMENT, "%zu examples are too few to hold back a share of %g",
                    from->n, share);
    struct dataset out = { 0 };
    out.cap = from->n / every;
    out.examples = mem_alloc(out.cap, sizeof *out.examples);
    if (!out.examples) return fail_memory(err, out.cap * sizeof *out.examples);
    for (size_t i = 0; i < from->n; i++) {
        struct example e = from->examples[i];
        if (i % every != every - 1) {
            from->examples[kept++] = e;
            continue;
        }
        out.examples[out.n++] = e;
        out.n_tokens += e.n;
        out.n_learned += e.n_learned;
    }
    from->n = kept;
    from->n_tokens -= out.n_tokens;
    from->n_learned -= out.n_learned;
    *held = out;
    return BZ_OK;
}

enum { OPEN_PACKS = 32 }; /* sequences that may still get another example */

/* Which pack each example goes into; how many tokens each pack has. The number of packs. */
static size_t plan_packs(const struct dataset *d, uint32_t n_max, const uint32_t *order,
                         uint32_t *where, uint32_t *size)
{
    size_t n = 0;
    for (size_t k = 0; k < d->n; k++) {
        size_t i = order[k];
        size_t p = n > OPEN_PACKS ? n - OPEN_PACKS : 0;
        while (p < n && size[p] + d->examples[i].n > n_max) p++;
        if (p == n) size[n++] = 0;
        size[p] += d->examples[i].n;
        where[i] = (uint32_t)p;
    }
    return n;
}

static bool pack_open(struct example *e, uint32_t n)
{
    e->ids = mem_alloc(n, sizeof *e->ids);
    e->targets = mem_alloc(n, sizeof *e->targets);
    e->starts = mem_alloc(n, sizeof *e->starts);
    return e->ids && e->targets && e->starts;
}

static void pack_append(struct example *to, const struct example *e)
{
    if (!to->n) to->line = e->line;
    for (uint32_t i = 0; i < e->n; i++) {
        to->ids[to->n + i] = e->ids[i];
        to->targets[to->n + i] = e->targets[i];
        to->starts[to->n + i] = (int32_t)(to->n + (e->starts ? (uint32_t)e->starts[i] : 0));
    }
    to->n += e->n;
    to->n_learned += e->n_learned;
}

void shuffle(uint32_t *order, uint32_t n, uint64_t seed)
{
    struct rng rng = { seed };
    for (uint32_t k = 0; k < n; k++) order[k] = k;
    for (uint32_t k = n; k > 1; k--) {
        uint32_t other = (uint32_t)(rng_next(&rng) % k), kept = order[k - 1];
        order[k - 1] = order[other];
        order[other] = kept;
    }
}

enum bz_status dataset_pack(struct dataset *d, uint32_t n_max, uint64_t seed, struct bz_err *err)
{
    struct dataset out = { .n_tokens = d->n_tokens, .n_learned = d->n_learned };
    uint32_t *where = mem_alloc(3 * d->n, sizeof *where);
    uint32_t *size = where ? where + d->n : NULL, *order = where ? size + d->n : NULL;
    if (where) shuffle(order, (uint32_t)d->n, rng_at(seed ^ 0x7061636b, 0));
    size_t n = where ? plan_packs(d, n_max, order, where, size) : 0;
    out.examples = where ? mem_alloc(n, sizeof *out.examples) : NULL;
    bool ok = out.examples != NULL;
    for (size_t p = 0; ok && p < n; p++) ok = pack_open(&out.examples[out.n++], size[p]);
    for (size_t i = 0; ok && i < d->n; i++) pack_append(&out.examples[where[i]], &d->examples[i]);
    mem_free(where);
    if (ok) dataset_free(d);
    else dataset_free(&out);
    if (!ok) return fail_memory(err, d->n_tokens * 3 * sizeof(int32_t));
    out.cap = out.n;
    *d = out;
    return BZ_OK;
}
