/* See text.h. */
#include "text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct kept {
    struct kept *next;
    uint64_t length;
    char data[];
} kept;

bp_text bp_text_keep(const char *data, uint64_t length) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static kept *first;
    pthread_mutex_lock(&lock);
    kept *one = first;
    while (one && (one->length != length || memcmp(one->data, data, length) != 0))
        one = one->next;
    if (!one && (one = malloc(sizeof(*one) + length + 1))) {
        one->length = length;
        memcpy(one->data, data, length);
        one->data[length] = 0;
        one->next = first;
        first = one;
    }
    pthread_mutex_unlock(&lock);
    return one ? (bp_text){one->data, one->length} : (bp_text){NULL, 0};
}
