/*
 * The thread-local sentence behind every negative status (core.last_error).
 *
 * Contract: a function that fails leaves exactly one sentence, without a full stop, with the
 * offending value in it, and returns the status that bp_fail returned.
 */
#ifndef BEDPLATE_HAL_ERROR_H
#define BEDPLATE_HAL_ERROR_H

#include "bedplate/hal.h"

#include <stdarg.h>

#define BP_ERROR_BYTES 512

/* Set this thread's text and return `status`. Cold: what leads here lies apart from the code that
 * runs, which then takes fewer lines of the instruction cache. */
int32_t bp_fail(int32_t status, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

/* This thread's text, terminated. */
const char *bp_error_text(void);

/* Forget it. */
void bp_error_clear(void);

/* Copy it out as core.last_error promises. */
int32_t bp_error_copy(char *buffer, uint64_t capacity, uint64_t *length);

#endif
