/* SipHash-2-4-128: the keyed hash behind prefix keys.
 *
 * Keyed, because an attacker who can choose prompts must not be able to make two
 * prefixes share a key. Source: the SipHash reference code of its authors describes the
 * 128-bit variant; this is written from the algorithm and tested on its vectors.
 */
#include <string.h>

#include "bedplate/serving.h"

static inline uint64_t rotate(uint64_t x, int bits) {
    return (x << bits) | (x >> (64 - bits));
}

static inline void round_once(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static inline void rounds(uint64_t v[4], int count) {
    for (int i = 0; i < count; i++)
        round_once(v);
}

void bp_serving_siphash(const uint64_t key[2], const void *data, uint64_t bytes, uint64_t out[2]) {
    const uint8_t *in = data;
    uint64_t v[4] = {0x736f6d6570736575u ^ key[0], 0x646f72616e646f6du ^ key[1] ^ 0xee,
                     0x6c7967656e657261u ^ key[0], 0x7465646279746573u ^ key[1]};
    uint64_t left = bytes;
    for (; left >= 8; left -= 8, in += 8) {
        uint64_t word;
        memcpy(&word, in, 8);
        v[3] ^= word;
        rounds(v, 2);
        v[0] ^= word;
    }
    uint64_t last = bytes << 56;
    for (uint64_t i = 0; i < left; i++)
        last |= (uint64_t)in[i] << (8 * i);
    v[3] ^= last;
    rounds(v, 2);
    v[0] ^= last;
    v[2] ^= 0xee;
    rounds(v, 4);
    out[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    rounds(v, 4);
    out[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}
