/* The host that a backend gets when the caller gives none: log to stderr, offer nothing. */
#define _GNU_SOURCE
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const LEVELS[] = {"?", "error", "warning", "info", "debug"};

/* BEDPLATE_HAL_LOG: error, warning, info or debug; unset or anything else logs
 * nothing, and so does a process with more rights than its caller. */
static uint32_t chosen_level(void) {
    const char *wanted = secure_getenv("BEDPLATE_HAL_LOG");
    for (uint32_t level = 1; wanted && level <= BP_LOG_DEBUG; level++)
        if (strcmp(wanted, LEVELS[level]) == 0)
            return level;
    return 0;
}

static void log_line(void *user, uint32_t level, const bp_text *line) {
    (void)user;
    if (!line || level == 0 || level > chosen_level())
        return;
    fprintf(stderr, "%s hal %.*s\n", LEVELS[level], (int)line->length, line->data);
}

static const void *no_service(void *user, const bp_text *name) {
    (void)user;
    (void)name;
    return NULL;
}

void bp_hal_host_complete(bp_host *host) {
    host->head.struct_version = 1;
    host->head.struct_size = sizeof(*host);
    if (!host->log)
        host->log = log_line;
    if (!host->service)
        host->service = no_service;
}
