/* check.h - the whole test framework: a test is a sentence, a failure prints where.
 *
 *     TEST("a truncated header is an error")
 *     {
 *         CHECK(gguf_open(...) == BZ_ERR_FORMAT);
 *     }
 *
 * Every test_<module>.c has one `int main(void)` whose body is TEST blocks and which ends with
 * `return check_done();`. Exit code = number of failed checks (at most 99).
 */
#ifndef BEZEL_TESTS_CHECK_H
#define BEZEL_TESTS_CHECK_H

#include <stdio.h>
#include <string.h>

static int check_failed, check_passed, check_tests, check_skipped;
static const char *check_name = "";

#define TEST(name) for (int once_ = (check_name = (name), check_tests++, 1); once_; once_ = 0)

#define CHECK(cond) check_that((cond) ? 1 : 0, __FILE__, __LINE__, #cond)

/* printf-style explanation after the condition, shown on failure. */
#define CHECK_MSG(cond, ...)                                                                       \
    do {                                                                                           \
        if (!check_that((cond) ? 1 : 0, __FILE__, __LINE__, #cond)) {                              \
            fprintf(stderr, "    ");                                                               \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
        }                                                                                          \
    } while (0)

#define CHECK_STR(got, want) check_str((got), (want), __FILE__, __LINE__, #got)

static inline int check_that(int ok, const char *file, int line, const char *text)
{
    if (ok) {
        check_passed++;
        return 1;
    }
    check_failed++;
    fprintf(stderr, "%s:%d: FAILED in \"%s\": %s\n", file, line, check_name, text);
    return 0;
}

static inline int check_str(const char *got, const char *want, const char *file, int line,
                            const char *text)
{
    int ok = got && want && strcmp(got, want) == 0;
    if (!check_that(ok, file, line, text))
        fprintf(stderr, "    got  \"%s\"\n    want \"%s\"\n", got ? got : "(null)",
                want ? want : "(null)");
    return ok;
}

/* A skip says why; in CI (BEZEL_CI set) it counts as a failure. */
#define SKIP(why)                                                                                  \
    do {                                                                                           \
        printf("  skipped \"%s\": %s\n", check_name, (why));                                       \
        check_skipped++;                                                                           \
    } while (0)

static inline int check_done(void)
{
    printf("%d tests, %d checks: %d passed, %d failed, %d skipped\n", check_tests,
           check_passed + check_failed, check_passed, check_failed, check_skipped);
    return check_failed > 99 ? 99 : check_failed;
}

#endif
