/* See provider.h. */
#include "provider.h"

#include "../adopt.h"
#include "../chassis/host.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct forgotten {
    struct forgotten *next;
    uint64_t token;
} forgotten;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static forgotten *first;

int32_t bp_provider_find(bp_provider *out) {
    const void *given = bp_host_service("bp.provider.1:" BP_PROVIDER_NAME);
    if (!given)
        return bp_fail(BP_UNAVAILABLE,
                       "no machine is registered for %s in this process; Python registers one",
                       BP_PROVIDER_NAME);
    int32_t status = BP_ADOPT(given, out, "the provider");
    if (status)
        return status;
    if (!out->enumerate || !out->properties || !out->capabilities || !out->load || !out->unload ||
        !out->last_error)
        return bp_fail(BP_UNAVAILABLE, "the machine registered for %s lacks a function",
                       BP_PROVIDER_NAME);
    return BP_OK;
}

int32_t bp_provider_told(const bp_provider *machine, int32_t status, const char *what) {
    char words[BP_ERROR_BYTES] = "";
    if (status == BP_OK)
        return BP_OK;
    machine->last_error(machine->user, words, sizeof(words), NULL);
    return bp_fail(status > 0 ? BP_INTERNAL : status, "%s", words[0] ? words : what);
}

void bp_provider_forget(uint64_t token) {
    forgotten *one = malloc(sizeof(*one));
    /* Without memory the machine keeps its module, which is better than a wrong one. */
    if (!one)
        return;
    one->token = token;
    pthread_mutex_lock(&lock);
    one->next = first;
    first = one;
    pthread_mutex_unlock(&lock);
}

void bp_provider_settle(void) {
    bp_provider machine;
    pthread_mutex_lock(&lock);
    forgotten *one = first;
    first = NULL;
    pthread_mutex_unlock(&lock);
    int there = one && bp_provider_find(&machine) == BP_OK;
    while (one) {
        forgotten *next = one->next;
        if (there)
            machine.unload(machine.user, one->token);
        free(one);
        one = next;
    }
}
