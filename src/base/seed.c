/* seed.c - see seed.h: what the system offers, where there is one. */
#include "base/seed.h"

#include <sys/random.h> /* getentropy, on macOS */
#include <time.h>
#include <unistd.h>

void seed_fresh(uint64_t out[2])
{
    if (getentropy(out, 2 * sizeof *out) == 0) return;
    /* A sandbox without it: the clock, and where the system put the stack. */
    struct timespec now = { 0 };
    clock_gettime(CLOCK_MONOTONIC, &now);
    out[0] = (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec;
    out[1] = (uint64_t)(uintptr_t)&now;
}
