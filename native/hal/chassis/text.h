/*
 * Texts that live as long as the library, as the ABI promises of those a backend returns.
 *
 * The same text is kept once, so what grows is bounded by how many different ones there are. Needs
 * nothing of the backend.
 */
#ifndef BEDPLATE_HAL_CHASSIS_TEXT_H
#define BEDPLATE_HAL_CHASSIS_TEXT_H

#include "bedplate/hal.h"

#include <string.h>

/* Words that live as long as the library already. */
static inline bp_text bp_text_of(const char *words) {
    return (bp_text){words, strlen(words)};
}

/* A kept copy, terminated; data is null when host memory is short. Thread-safe. */
bp_text bp_text_keep(const char *data, uint64_t length);

#endif
