/*
 * What a native module needs beside hal.h: the declaration of its one export, and the way a kernel
 * names what went wrong. Header only, so that a module links to nothing of ours.
 *
 * A kernel that fails writes one sentence with bp_native_fail and returns what that returns. All
 * workers of a launch share the record; the first failure wins, the others only return their code.
 */
#ifndef BEDPLATE_HAL_NATIVE_H
#define BEDPLATE_HAL_NATIVE_H

#include "bedplate/hal.h"

#include <stdarg.h>
#include <stdio.h>

/* Record the first failure of a launch and return `status` (negative). `value` is the offending
 * number, also given in the sentence. */
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
static inline int32_t bp_native_fail(void *fault_record, int32_t status, uint64_t block,
                                     int64_t value, const char *format, ...) {
    bp_native_fault *fault = (bp_native_fault *)fault_record;
    uint32_t unclaimed = 0;
    if (fault && __atomic_compare_exchange_n(&fault->claimed, &unclaimed, 1u, 0, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE)) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(fault->text, sizeof(fault->text), format, arguments);
        va_end(arguments);
        fault->status = status;
        fault->block = block;
        fault->value = (uint64_t)value;
    }
    return status;
}

/* Whether the work of this launch is not wanted any more. */
static inline int bp_native_cancelled(const bp_native_launch *launch) {
    return launch->cancel && __atomic_load_n(launch->cancel, __ATOMIC_RELAXED) != 0;
}

/* An entry of a module's kernels: a function under its own name. */
#define BP_NATIVE_KERNEL(function) {{#function, sizeof(#function) - 1}, function}

/* The module of an array of kernels and its one export; `level` is the instruction set that it
 * needs, "generic" for any processor. Once in a library, at the end of a file. */
#define BP_NATIVE_MODULE(array, level)                                                             \
    static const bp_native_module bp_native_module_own = {                                         \
        .head = {1, sizeof(bp_native_module)},                                                     \
        .isa = {level, sizeof(level) - 1},                                                         \
        .kernel_count = sizeof(array) / sizeof((array)[0]),                                        \
        .kernels = array,                                                                          \
    };                                                                                             \
    BP_EXPORT int32_t bedplate_native_module_query(uint32_t wanted_major,                          \
                                                   const bp_native_module **out) {                 \
        if (wanted_major != BP_ABI_MAJOR)                                                          \
            return BP_VERSION;                                                                     \
        *out = &bp_native_module_own;                                                              \
        return BP_OK;                                                                              \
    }                                                                                              \
    typedef int bp_native_module_takes_a_semicolon

#endif /* BEDPLATE_HAL_NATIVE_H */
