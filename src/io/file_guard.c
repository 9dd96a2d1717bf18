/* file_guard.c - see file_guard.h. The handler takes no lock and allocates nothing: it reads a
 * table of atomics, and calls mmap, which on every POSIX system is a plain system call. A place in
 * the table may change while the handler reads it. So the handler uses only what it read between
 * two looks at the same even number of changes. */
#include "io/file_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_GUARDS = 1024 };

struct file_guard {
    atomic_bool taken;
    atomic_uint n_changes;   /* odd: `first` and `n` are being changed */
    _Atomic uintptr_t first; /* of the mapping; 0: none */
    _Atomic size_t n;
    atomic_bool lost;
};

static struct file_guard guards[MAX_GUARDS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool installed;
static struct sigaction before;
static uintptr_t page; /* bytes of one */

/* Zeros from the page at `at` to the end of the mapping: what follows a hole is mostly gone too. */
static bool put_zeros(uintptr_t at, uintptr_t end)
{
    uintptr_t from = at & ~(page - 1);
    void *zeros =
        mmap((void *)from, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return zeros != MAP_FAILED;
}

/* By kill, and not by the system: POSIX says so with a code of at most 0, macOS with SI_USER. */
static bool is_sent(const siginfo_t *info)
{
    return info->si_code <= 0 || info->si_code == SI_USER;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else if (before.sa_handler == SIG_DFL || !is_sent(info)) { /* a fault cannot be ignored */
        signal(number, SIG_DFL);
        raise(number); /* ends the process when the handler returns: a sent one comes only once */
    }
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    uintptr_t at = (uintptr_t)info->si_addr;
    bool ours = false;
    for (int i = 0; i < MAX_GUARDS && !ours && !is_sent(info); i++) {
        struct file_guard *g = &guards[i];
        unsigned n_changes = atomic_load(&g->n_changes);
        uintptr_t first = atomic_load(&g->first);
        size_t n = atomic_load(&g->n);
        if (n_changes % 2 || n_changes != atomic_load(&g->n_changes)) continue;
        if (!first || at < first || at - first >= n) continue;
        atomic_store(&g->lost, true);
        ours = put_zeros(at, first + n);
    }
    if (!ours) pass_on(number, info, context);
    errno = kept;
}

static void install(void)
{
    struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    long n = sysconf(_SC_PAGESIZE);
    sigemptyset(&action.sa_mask);
    page = n > 0 ? (uintptr_t)n : 0;
    installed = page && sigaction(SIGBUS, &action, &before) == 0;
}

static void set_mapping(struct file_guard *g, uintptr_t first, size_t n)
{
    atomic_fetch_add(&g->n_changes, 1);
    atomic_store(&g->first, first);
    atomic_store(&g->n, n);
    atomic_fetch_add(&g->n_changes, 1);
}

struct file_guard *file_guard_add(const void *mapped, size_t n)
{
    pthread_once(&once, install);
    for (int i = 0; installed && i < MAX_GUARDS; i++) {
        struct file_guard *g = &guards[i];
        bool taken = false;
        if (!atomic_compare_exchange_strong(&g->taken, &taken, true)) continue;
        atomic_store(&g->lost, false);
        set_mapping(g, (uintptr_t)mapped, n);
        return g;
    }
    return NULL;
}

bool file_guard_lost(const struct file_guard *g)
{
    return atomic_load(&((struct file_guard *)(uintptr_t)g)->lost);
}

void file_guard_remove(struct file_guard *g)
{
    if (!g) return;
    set_mapping(g, 0, 0);
    atomic_store(&g->taken, false);
}
