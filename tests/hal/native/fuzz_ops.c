/*
 * The fuzzer's ops: tensors from arbitrary to right, plans of them, and commands that run plans.
 *
 * What lies in the memory that an op reads is whatever other calls left there, so ids, slots,
 * positions and block tables are mostly nonsense: an op must fault on it, never follow it.
 */
#include "fuzz.h"

static bp_tensor *tensor(fuzzer *own) {
    static const uint32_t DTYPES[] = {BP_DTYPE_F32, BP_DTYPE_F16,  BP_DTYPE_BF16, BP_DTYPE_I8,
                                      BP_DTYPE_I32, BP_DTYPE_I64,  BP_DTYPE_U8,   BP_DTYPE_U32,
                                      BP_DTYPE_U64, BP_DTYPE_Q4_0, BP_DTYPE_Q4_1, BP_DTYPE_Q8_0};
    static const int64_t SIZES[] = {1, 1, 2, 2, 4, 32, 64, 0, 3, -1, INT64_MAX, 1ll << 40};
    uint32_t rank = (uint32_t)(chance(own, 90) ? 1 + below(own, 3) : below(own, 10));
    int64_t *shape = cut(own, rank * 8), *stride = cut(own, rank * 8);
    bp_tensor made = {.head = {1, sizeof(made)}, .rank = rank};
    made.dtype = chance(own, 70) ? BP_DTYPE_F32 : DTYPES[below(own, 12)];
    if (chance(own, 3))
        made.dtype = (uint32_t)number(own);
    for (uint32_t i = 0; shape && stride && i < rank; i++) {
        shape[i] = SIZES[below(own, chance(own, 95) ? 7 : 12)];
        stride[i] = chance(own, 50) ? SIZES[below(own, 12)] : (int64_t)number(own);
    }
    made.shape = chance(own, 2) ? NULL : shape;
    made.stride = chance(own, 85) ? NULL : stride;
    return chance(own, 20) ? NULL : GIVEN(own, made);
}

/* A shape of each op that is right, to be spoiled in one place or none. */
typedef struct recipe {
    uint32_t op, count;
    struct {
        uint32_t dtype, rank;
        int64_t shape[5];
    } tensors[8];
} recipe;

#define F32   BP_DTYPE_F32
#define I32   BP_DTYPE_I32
#define NONE  {0, 0, {0}}
#define COUNT {BP_DTYPE_U32, 1, {1}}
static const recipe RECIPES[] = {
    {BP_OP_MATMUL,
     6,
     {{F32, 2, {2, 32}},
      {F32, 2, {32, 4}},
      {F32, 1, {4}},
      {F32, 2, {2, 4}},
      COUNT,
      {F32, 2, {2, 4}}}},
    {BP_OP_QUANTIZED_MATMUL,
     6,
     {{F32, 2, {2, 32}},
      {BP_DTYPE_Q8_0, 2, {4, 32}},
      {F32, 1, {4}},
      NONE,
      COUNT,
      {F32, 2, {2, 4}}}},
    {BP_OP_QUANTIZED_MATMUL,
     6,
     {{F32, 2, {1, 64}},
      {BP_DTYPE_Q4_1, 2, {2, 64}},
      NONE,
      {F32, 2, {1, 2}},
      NONE,
      {F32, 2, {1, 2}}}},
    {BP_OP_RMSNORM, 4, {{F32, 2, {2, 32}}, {F32, 1, {32}}, COUNT, {F32, 2, {2, 32}}}},
    {BP_OP_ROPE, 4, {{F32, 3, {2, 2, 8}}, {I32, 1, {2}}, {F32, 1, {4}}, COUNT}},
    {BP_OP_PAGED_ATTENTION,
     8,
     {{F32, 3, {2, 2, 8}},
      {F32, 4, {4, 1, 4, 8}},
      {F32, 4, {4, 1, 4, 8}},
      {I32, 2, {1, 2}},
      {I32, 1, {2}},
      {I32, 1, {1}},
      COUNT,
      {F32, 3, {2, 2, 8}}}},
    {BP_OP_SOFTMAX, 3, {{F32, 2, {2, 32}}, COUNT, {F32, 2, {2, 32}}}},
    {BP_OP_SILU_MUL, 3, {{F32, 2, {2, 64}}, COUNT, {F32, 2, {2, 32}}}},
    {BP_OP_EMBEDDING, 4, {{F32, 2, {4, 32}}, {I32, 1, {2}}, COUNT, {F32, 2, {2, 32}}}},
    {BP_OP_SAMPLE,
     5,
     {{F32, 2, {2, 32}}, {BP_DTYPE_U8, 2, {2, 64}}, COUNT, {I32, 1, {2}}, {F32, 1, {2}}}},
    {BP_OP_KV_WRITE,
     6,
     {{F32, 3, {2, 1, 8}},
      {F32, 3, {2, 1, 8}},
      {I32, 1, {2}},
      COUNT,
      {F32, 4, {4, 1, 4, 8}},
      {F32, 4, {4, 1, 4, 8}}}},
    {BP_OP_BLOCK_COPY,
     4,
     {{I32, 2, {2, 2}}, COUNT, {F32, 5, {1, 4, 1, 4, 8}}, {F32, 5, {1, 4, 1, 4, 8}}}},
    {BP_OP_REDUCE, 3, {{F32, 2, {2, 32}}, COUNT, {F32, 1, {2}}}},
    {BP_OP_CONVERT, 3, {{F32, 2, {2, 32}}, COUNT, {BP_DTYPE_BF16, 2, {2, 32}}}},
};

static bp_tensor *cooked(fuzzer *own, const recipe *from, uint32_t i) {
    uint32_t rank = from->tensors[i].rank;
    if (!rank)
        return NULL;
    int64_t *shape = cut(own, rank * 8);
    bp_tensor good = {.head = {1, sizeof(good)}, .dtype = from->tensors[i].dtype, .rank = rank};
    if (!shape)
        return NULL;
    memcpy(shape, from->tensors[i].shape, rank * 8);
    if (chance(own, 4))
        shape[below(own, rank)] = (int64_t)below(own, 70) - 1;
    if (chance(own, 3))
        good.dtype = (uint32_t)number(own);
    good.shape = shape;
    /* Most are given whole: a spoiled head alone would hide what lies behind it. */
    if (chance(own, 10))
        return GIVEN(own, good);
    bp_tensor *whole = cut(own, sizeof(good));
    if (whole)
        *whole = good;
    return whole;
}

static void *attributes(fuzzer *own, uint32_t op, uint64_t *bytes) {
    union {
        bp_rmsnorm_attributes rmsnorm;
        bp_rope_attributes rope;
        bp_softmax_attributes softmax;
        bp_paged_attention_attributes attention;
        bp_quantized_matmul_attributes quantized;
    } all = {.attention = {.scale = 0.5f, .soft_cap = chance(own, 20) ? 2.0f : 0.0f}};
    uint32_t known = sizeof(bp_matmul_attributes);
    *bytes = 0;
    if (op == BP_OP_PAGED_ATTENTION) {
        known = sizeof(all.attention);
        all.attention.sliding_window = (uint32_t)below(own, 4);
    } else if (op == BP_OP_RMSNORM || op == BP_OP_ROPE || op == BP_OP_SOFTMAX ||
               op == BP_OP_QUANTIZED_MATMUL) {
        known = sizeof(all.rmsnorm);
        memset(&all, 0, sizeof(all));
        if (op == BP_OP_RMSNORM)
            all.rmsnorm.eps = 1e-5f;
        else if (op == BP_OP_SOFTMAX)
            all.softmax.scale = 1.0f;
        else if (op == BP_OP_ROPE)
            all.rope.scale = 1.0f;
        else
            all.quantized.activation = (uint32_t)below(own, 2);
    } else if (chance(own, 50)) {
        return NULL;
    } else {
        memset(&all, 0, sizeof(all));
    }
    all.rmsnorm.head = (bp_head){1, known};
    if (chance(own, 15)) {
        void *spoiled = given(own, &all, known, known - 32);
        bp_head head = {0, 0};
        if (spoiled)
            memcpy(&head, spoiled, sizeof(head));
        /* What is really there: a size that no struct can have has a head only. */
        int possible =
            head.struct_size >= 8 && head.struct_size <= 65536 && head.struct_size % 8 == 0;
        *bytes = spoiled ? possible ? head.struct_size : 8 : 0;
        return spoiled;
    }
    void *whole = cut(own, known);
    if (!whole)
        return NULL;
    memcpy(whole, &all, known);
    *bytes = known;
    return whole;
}

void fuzz_ops(fuzzer *own) {
    uint64_t device = fuzz_device(own), bytes = 0;
    if (chance(own, 10)) {
        CALL(ops->release(device, handle(own, PLANS)), NULL);
        return;
    }
    const recipe *from = &RECIPES[below(own, sizeof(RECIPES) / sizeof(RECIPES[0]))];
    const bp_tensor *same = tensor(own), *tensors[9] = {NULL};
    uint32_t op = from->op, count = from->count;
    void *words = attributes(own, op, &bytes);
    for (uint32_t i = 0; i < count; i++)
        tensors[i] = cooked(own, from, i);
    if (chance(own, 20)) {
        op = (uint32_t)(chance(own, 95) ? 1 + below(own, 13) : number(own));
        count = (uint32_t)(1 + below(own, 9));
        for (uint32_t i = 0; i < count; i++)
            tensors[i] = chance(own, 40) ? same : tensor(own);
    }
    bp_op_plan plan = {.head = {1, sizeof(plan)}, .plan = OUT_PATTERN};
    bp_op_plan *out = chance(own, 97) ? &plan : NULL;
    const bp_tensor *const *listed = chance(own, 2) ? NULL : tensors;
    if (CALL(ops->plan(device, op, listed, count, words, bytes, out), NULL) == BP_OK) {
        uint32_t slot = keep(own, PLANS, plan.plan);
        if (op == from->op && count == from->count)
            own->recipes[slot] = (uint32_t)(from - RECIPES);
        static const char *const OPS[] = {
            "?",        "matmul",    "quantized", "rmsnorm",  "rope",       "attention", "softmax",
            "silu_mul", "embedding", "sample",    "kv_write", "block_copy", "reduce",    "convert"};
        reached(own, OPS[op]);
    }
}

/* Runs a plan with bindings that fit its recipe, most of the time. */
void *fuzz_op_command(fuzzer *own) {
    uint32_t slot = (uint32_t)below(own, POOL);
    const recipe *from = &RECIPES[own->recipes[slot]];
    uint32_t count = chance(own, 95) ? from->count : (uint32_t)below(own, 10);
    bp_range *bindings = cut(own, count * sizeof(*bindings));
    for (uint32_t i = 0; bindings && i < count; i++) {
        int absent = i < from->count && from->tensors[i].rank == 0;
        bindings[i] = (bp_range){handle(own, MEMORIES), 0, 1024};
        if (absent || chance(own, 3))
            bindings[i] = (bp_range){0, 0, 0};
        if (chance(own, 5))
            bindings[i].length = number(own);
    }
    bp_op_command made = {.head = {1, sizeof(made)},
                          .kind = BP_COMMAND_OP,
                          .plan = chance(own, 90) ? own->pools[PLANS][slot] : handle(own, PLANS),
                          .bindings = chance(own, 3) ? NULL : bindings,
                          .binding_count = count};
    if (chance(own, 50))
        made.workspace = (bp_range){handle(own, MEMORIES), 0, 1024};
    return GIVEN(own, made);
}
