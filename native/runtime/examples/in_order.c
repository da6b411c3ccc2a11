/*
 * A rule to begin with: the ready batch that came first, whatever its priority.
 *
 *     gcc -shared -fPIC -Inative/runtime/include -Inative/hal/include \
 *         native/runtime/examples/in_order.c -o in_order.so
 *
 * `explore(program, rule="./in_order.so")` then says whether every order of a program still ends,
 * and how often a ready batch is overtaken. -DGREEDY looks at the priority alone, which starves.
 */
#include <bedplate/policy.h>

uint32_t bp_runtime_rule_1(void *data, const bp_runtime_ready *ready, uint32_t count,
                           uint32_t ageing) {
    uint32_t best = 0;
    (void)data, (void)ageing;
    for (uint32_t i = 1; i < count; i++) {
#ifdef GREEDY
        if (ready[i].priority > ready[best].priority)
            best = i;
#else
        if (ready[i].arrival < ready[best].arrival)
            best = i;
#endif
    }
    return best;
}
