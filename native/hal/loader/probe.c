/*
 * bedplate_hal_probe PATH [DESCRIPTOR]: the first query of a file, in a process of its own; of the
 * open descriptor, when it is given one.
 *
 * Prints `key=value` lines and exits with 0, or prints the reason and exits with 1; beside it the
 * status, when the library answered its query and then found no device. A library that
 * crashes or hangs takes this process with it and not the host, which reads the signal or kills it
 * at its deadline. What a host asks before it opens a device is asked here too, for each one; what
 * they answer is the host's to judge. No device is opened.
 */
#include "../error.h"
#include "bedplate/hal_loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A host takes no more claims of a device, or facts; and looks at no more devices here. */
#define MOST 4096u

/* Reads a text as a host does, so that one that lies nowhere ends this process. */
static unsigned touch(const bp_text *text) {
    unsigned sum = 0;
    for (uint64_t i = 0; text->data && i < text->length; i++)
        sum += (unsigned char)text->data[i];
    return sum;
}

static unsigned look_at(const bp_core *core, uint32_t index) {
    static bp_capability claims[MOST];
    bp_device_properties facts = {.head = {1, sizeof(facts)}};
    uint32_t count = 0;
    unsigned sum = 0;
    if (core->properties(index, &facts) == BP_OK) {
        sum = touch(&facts.name) + touch(&facts.driver);
        for (uint32_t i = 0; i < facts.property_count; i++)
            sum += touch(&facts.properties[i].key) + touch(&facts.properties[i].value);
    }
    core->capabilities(index, claims, MOST, &count);
    return sum;
}

static int refuse(const bp_api *api) {
    char text[BP_ERROR_BYTES] = "";
    /* The ABI does not say that a backend must take NULL for it. */
    uint64_t length = 0;
    bp_hal_last_error(text, sizeof(text), NULL);
    if (api && !text[0])
        api->core->last_error(text, sizeof(text), &length);
    printf("reason=%s\n", text);
    return 1;
}

int main(int count, char **words) {
    if (count != 2 && count != 3) {
        fprintf(stderr, "usage: bedplate_hal_probe PATH [DESCRIPTOR]\n");
        return 2;
    }
    bp_load_options options = {.head = {1, sizeof(options)},
                               .path = {words[1], strlen(words[1])},
                               .descriptor = count == 3 ? atoi(words[2]) : 0};
    const bp_api *api = NULL;
    if (bp_hal_load(&options, &api))
        return refuse(NULL);
    uint32_t devices = 0;
    int32_t status = api->core->enumerate(&devices);
    if (status) {
        printf("status=%d\n", status);
        return refuse(api);
    }
    /* Volatile, because nobody needs the sum. */
    volatile unsigned sum = 0;
    for (uint32_t i = 0; i < devices && i < MOST; i++)
        sum += look_at(api->core, i);
    printf("major=%u\nminor=%u\ndevices=%u\n", api->major, api->minor, devices);
    return 0;
}
