/* plan.c - `bezel plan`: the dispatches of a step on a GPU, without one. */
#include "plan.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli_model.h"
#include "cli/shipped.h"

/* The steps of MODEL.md that a dispatch is part of: "L3 6, L4 3 4 5". */
static const char *steps_of(const struct plan_label *label, char text[64])
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < 2; i++) {
        const struct plan_steps *s = &label->of[i];
        if (!s->steps) continue;
        if (n) n += (size_t)snprintf(text + n, 64 - n, ", ");
        if (s->layer >= 0) n += (size_t)snprintf(text + n, 64 - n, "L%d", s->layer);
        else n += (size_t)snprintf(text + n, 64 - n, "--");
        for (int k = 1; k < 32 && n < 60; k++)
            if (s->steps >> k & 1) n += (size_t)snprintf(text + n, 64 - n, " %d", k);
    }
    return text;
}

static void print_text(const struct plan *p, const char *model, const char *profile)
{
    char steps[64];
    if (p->pass)
        printf(
            strcmp(p->pass, "canvas") == 0
                ? "A step of the canvas.\n\n"
                : "The encoder pass, which fills the cache; --canvas: a step of the canvas.\n\n");
    printf("       steps of MODEL.md\n");
    for (uint32_t i = 0; i < p->n; i++) {
        const struct plan_line *l = &p->lines[i];
        const uint32_t *g = l->dispatch->groups;
        printf("%4u   %-18s %-36s %6u groups", i + 1, steps_of(&l->label, steps), l->kernel,
               g[0] * g[1] * g[2]);
        if (l->bytes) printf("  %7.2f MB", (double)l->bytes / 1e6);
        else printf("  %10s", "");
        printf("  %-34s %s\n", l->constants, l->weights);
    }
    printf("\n%s on %s, %s tier: %u dispatches, which read %.2f MB of weights\n", model, profile,
           p->tier, p->n, (double)p->bytes / 1e6);
    printf(
        "memory: weights %.1f MB, keys and values %.1f MB, intermediates %.1f MB, scratch of this "
        "step %.1f MB\n",
        (double)p->weight_bytes / 1e6, (double)p->cache_bytes / 1e6, (double)p->act_bytes / 1e6,
        (double)p->scratch_bytes / 1e6);
}

static void put_member(struct buf *b, const char *name, const char *text)
{
    buf_printf(b, ",\"%s\":", name);
    json_put_string(b, str_of(text));
}

/* [{ "layer": -1 outside of layers, "steps": [numbers of MODEL.md] }] */
static void put_steps(struct buf *b, const struct plan_label *label)
{
    buf_puts(b, ",\"of\":[");
    for (int i = 0; i < 2 && label->of[i].steps; i++) {
        buf_printf(b, "%s{\"layer\":%d,\"steps\":[", i ? "," : "", label->of[i].layer);
        for (int k = 0, n = 0; k < 32; k++)
            if (label->of[i].steps >> k & 1) buf_printf(b, "%s%d", n++ ? "," : "", k);
        buf_puts(b, "]}");
    }
    buf_putc(b, ']');
}

static void put_line(struct buf *b, const struct plan_line *l)
{
    const struct null_dispatch *d = l->dispatch;
    buf_puts(b, "{\"kernel\":");
    json_put_string(b, str_of(l->kernel));
    buf_printf(b, ",\"workgroups\":%u,\"bytes\":%llu", d->groups[0] * d->groups[1] * d->groups[2],
               (unsigned long long)l->bytes);
    put_steps(b, &l->label);
    put_member(b, "constants", l->constants);
    put_member(b, "access", l->access);
    put_member(b, "weights", l->weights);
    uint32_t n;
    const uint8_t *params = null_host_params(d, &n);
    buf_puts(b, ",\"params\":\"");
    for (uint32_t i = 0; i < n; i++) buf_printf(b, "%02x", params[i]);
    buf_puts(b, "\",\"buffers\":[");
    for (uint32_t i = 0; i < d->n_bindings; i++)
        buf_printf(b, "%s[%u,%u,%u]", i ? "," : "", d->bindings[i].buffer, d->bindings[i].offset,
                   d->bindings[i].size);
    buf_puts(b, "]}");
}

static bool print_json(const struct plan *p, const char *profile)
{
    struct buf b = { 0 };
    buf_printf(&b,
               "{\"profile\":\"%s\",\"tier\":\"%s\",%s%s%s\"dispatches\":%u,\"bytes\":%llu,"
               "\"weight_bytes\":%llu,\"cache_bytes\":%llu,\"intermediate_bytes\":%llu,"
               "\"scratch_bytes\":%llu,\"plan\":[",
               profile, p->tier, p->pass ? "\"pass\":\"" : "", p->pass ? p->pass : "",
               p->pass ? "\"," : "", p->n, (unsigned long long)p->bytes,
               (unsigned long long)p->weight_bytes, (unsigned long long)p->cache_bytes,
               (unsigned long long)p->act_bytes, (unsigned long long)p->scratch_bytes);
    for (uint32_t i = 0; i < p->n; i++) {
        if (i) buf_putc(&b, ',');
        buf_putc(&b, '\n');
        put_line(&b, &p->lines[i]);
    }
    buf_puts(&b, "]}\n");
    bool ok = !b.failed;
    if (ok) fwrite(b.data, 1, b.n, stdout);
    buf_free(&b);
    return ok;
}

static int misuse_profile(const struct cli_command *c, const char *name)
{
    char list[256] = "";
    for (size_t i = 0; gpu_profile_at(i); i++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", gpu_profile_at(i)->name);
    }
    return cli_misuse(c, "there is no device profile \"%s\"; there are %s", name, list);
}

/* A list of names with commas between, or "all", as bits. False: it was told. */
static bool read_rules(const struct cli_command *c, const char *list, uint32_t *out, int *code)
{
    char name[32];
    if (strcmp(list, "all") == 0) *out = ~0u;
    for (const char *at = list; *out != ~0u && *at;) {
        size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), at);
        uint32_t rule = plan_rule_find(name);
        if (!rule) {
            *code = cli_misuse(c, "there is no rule \"%.*s\"; `bezel plan --help` lists them",
                               (int)n, at);
            return false;
        }
        *out |= 1u << rule;
        at += n + (at[n] == ',');
    }
    return true;
}

static const char about[] =
    "The dispatches of one step on a GPU, and of drawing a token after it: kernel, workgroups,\n"
    "bytes of weights, constants, matrices. Needs no GPU and reads no weights. Of a diffusion\n"
    "model it is the encoder pass, which fills the cache, or (--canvas) a step of the canvas.\n"
    "\n"
    "device profiles (--device-profile NAME; the default is the first):\n";

/* With the profiles and the rules in it. */
static const char *about_all(char text[4096])
{
    size_t n = (size_t)snprintf(text, 4096, "%s", about);
    for (size_t i = 0; gpu_profile_at(i) && n < 4096; i++)
        n += (size_t)snprintf(text + n, 4096 - n, "  %-10s%s\n", gpu_profile_at(i)->name,
                              gpu_profile_at(i)->about);
    if (n < 4096)
        n += (size_t)snprintf(text + n, 4096 - n,
                              "\nrules of fusion, in their order (--without NAME):\n");
    for (uint32_t i = 1; plan_rule_name(i) && n < 4096; i++)
        n += (size_t)snprintf(text + n, 4096 - n, "%s  %-22s%s", i > 1 ? "\n" : "",
                              plan_rule_name(i), plan_rule_formula(i));
    return text;
}

int cmd_plan(int argc, char **argv)
{
    uint64_t rows = 1, horizon = 0, rank = 0, n_context = 0, n_batch = 512;
    const char *profile = "nvidia", *store = NULL, *model, *without = "", *tier = NULL;
    char text[4096];
    struct plan_options o = { 0 };
    bool json = false;
    const struct cli_option options[] = {
        { "--rows", "N", "tokens read at once; default 1, a token that is written", CLI_U64, &rows,
          NULL },
        { "--canvas", NULL, "a step of a diffusion model's canvas", CLI_FLAG, &o.canvas, NULL },
        { "--horizon", "N", "positions that attention is shaped for; default 128", CLI_U64,
          &horizon, NULL },
        { "--adapter", "PATH", "with this LoRA adapter", CLI_STR, &o.adapter, NULL },
        { "--rank", "N", "with an adapter of this rank on every linear", CLI_U64, &rank, NULL },
        { "--device-profile", "NAME", "the device; default nvidia", CLI_STR, &profile, NULL },
        { "--tier", "NAME",
          "kernels at most: matrix, subgroup or plain; default the profile's limits'", CLI_STR,
          &tier, NULL },
        { "--without", "RULES", "without these rules of fusion: names, or all", CLI_STR, &without,
          NULL },
        { "--ctx", "N", "tokens of context; default 4096", CLI_U64, &n_context, NULL },
        { "--batch", "N", "prompt tokens computed together; default 512", CLI_U64, &n_batch, NULL },
        { "--store", "DIR", "Ollama store; default where Ollama keeps it", CLI_STR, &store, NULL },
        { "--json", NULL, "for programs, with every parameter and binding", CLI_FLAG, &json, NULL },
    };
    const struct cli_command c = {
        "plan", "MODEL [options]", about_all(text), options, sizeof options / sizeof *options, 1, 1
    };
    int code;
    if (cli_parse(&c, argc, argv, &model, &code) < 0) return code;
    o.profile = gpu_profile_find(profile);
    if (!o.profile) return misuse_profile(&c, profile);
    if (tier && !(o.tier = plan_tier_find(tier)))
        return cli_misuse(&c, "there is no tier \"%s\"; there are matrix, subgroup and plain",
                          tier);
    if (!read_rules(&c, without, &o.without, &code)) return code;
    if (!rows || (rows | horizon | rank | n_context | n_batch) > INT32_MAX)
        return cli_misuse(&c, "that number of tokens is out of range");
    o.rows = (uint32_t)rows;
    o.horizon = (uint32_t)horizon;
    o.rank = (uint32_t)rank;
    struct bz_err err = { "" };
    struct plan p = { 0 };
    struct bz_engine_options engine = { .store = store };
    struct bz_session_options session = { .n_context = (uint32_t)n_context,
                                          .n_batch = (uint32_t)n_batch };
    char path[PATH_MAX];
    enum bz_status st = plan_open(&p, shipped_or(model, store, path), &engine, &session, &o, &err);
    if (st == BZ_OK && json && !print_json(&p, profile)) st = fail_memory(&err, 1 << 20);
    if (st == BZ_OK && !json) print_text(&p, model, profile);
    plan_close(&p);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
