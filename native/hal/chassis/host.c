/* See host.h. */
#include "host.h"

#include "../adopt.h"

static bp_host host;

int32_t bp_host_accept(const bp_host *given, uint32_t wanted_major, const bp_api **out) {
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "the query got no place for its result");
    *out = NULL;
    if (wanted_major != BP_ABI_MAJOR)
        return bp_fail(BP_VERSION, "this backend speaks ABI major %u, not %u", BP_ABI_MAJOR,
                       wanted_major);
    return given ? BP_ADOPT(given, &host, "the host") : BP_OK;
}

void bp_host_log(uint32_t level, const char *line) {
    bp_text text = {line, strlen(line)};
    if (host.log)
        host.log(host.user, level, &text);
}

const void *bp_host_service(const char *name) {
    bp_text text = {name, strlen(name)};
    return host.service ? host.service(host.user, &text) : NULL;
}
