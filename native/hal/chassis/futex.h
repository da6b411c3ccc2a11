/* Sleep on a word until it changes; the clock; the pause of a spin. Linux only. */
#ifndef BEDPLATE_HAL_CHASSIS_FUTEX_H
#define BEDPLATE_HAL_CHASSIS_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t bp_now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

/* Until *word differs from `seen`, a wake, a signal, or the absolute deadline; spurious returns
 * are allowed, so callers loop. */
static inline void bp_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t deadline_ns) {
    /* The kernel's time is signed; the far future is never. */
    struct timespec until = {(time_t)(deadline_ns / 1000000000ull),
                             (long)(deadline_ns % 1000000000ull)};
    struct timespec *limit = deadline_ns >= (uint64_t)INT64_MAX ? NULL : &until;
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, limit, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

static inline void bp_futex_wake(_Atomic uint32_t *word, int most) {
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, most, NULL, NULL, 0);
}

static inline void bp_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
