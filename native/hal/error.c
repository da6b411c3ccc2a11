/* The thread-local error text; each library that links this has its own. */
#include "error.h"

#include <stdio.h>
#include <string.h>

static _Thread_local char text[BP_ERROR_BYTES];

int32_t bp_fail(int32_t status, const char *format, ...) {
    /* The arguments may point into the old text. */
    char fresh[BP_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fresh, sizeof(fresh), format, arguments);
    va_end(arguments);
    memcpy(text, fresh, sizeof(text));
    return status;
}

const char *bp_error_text(void) {
    return text;
}

void bp_error_clear(void) {
    text[0] = 0;
}

int32_t bp_error_copy(char *buffer, uint64_t capacity, uint64_t *length) {
    uint64_t bytes = strlen(text);
    if (length)
        *length = bytes;
    if (!buffer || capacity == 0)
        return BP_OK;
    uint64_t kept = bytes < capacity - 1 ? bytes : capacity - 1;
    memcpy(buffer, text, kept);
    buffer[kept] = 0;
    return BP_OK;
}
