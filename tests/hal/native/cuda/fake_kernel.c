/*
 * The fake's modules and kernels: names out of PTX text or a cubin, and a C function for each
 * kernel of native/hal/conform/kernels.ptx, of contract.ptx and of the backend itself.
 */
#include "fake.h"

#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct fake_block {
    bp_cu_context context;
    const fake_op *op;
    uint64_t number;
    unsigned char *shared;
} fake_block;

typedef bp_cu_result (*fake_body)(const fake_block *block);

static uint64_t word(const fake_block *block, unsigned at) {
    uint64_t value;
    memcpy(&value, block->op->parameters + at, 8);
    return value;
}

static uint32_t half(const fake_block *block, unsigned at) {
    uint32_t value;
    memcpy(&value, block->op->parameters + at, 4);
    return value;
}

static bp_cu_result nothing(const fake_block *block) {
    (void)block;
    return BP_CU_SUCCESS;
}

static bp_cu_result count_blocks(const fake_block *block) {
    uint32_t *out = fake_host(block->context, word(block, 0) + 4 * block->number, 4);
    if (!out)
        return BP_CU_ILLEGAL_ADDRESS;
    ++*out;
    return BP_CU_SUCCESS;
}

static bp_cu_result scale(const fake_block *block) {
    unsigned threads = block->op->block[0], n = half(block, 20);
    float a;
    memcpy(&a, block->op->parameters + 16, 4);
    for (unsigned t = 0; t < threads; t++) {
        uint64_t i = block->number * threads + t;
        if (i >= n)
            break;
        float *out = fake_host(block->context, word(block, 0) + 4 * i, 4);
        const float *x = fake_host(block->context, word(block, 8) + 4 * i, 4);
        if (!out || !x)
            return BP_CU_ILLEGAL_ADDRESS;
        *out = a * *x;
    }
    return BP_CU_SUCCESS;
}

static bp_cu_result shape(const fake_block *block) {
    uint32_t *out = fake_host(block->context, word(block, 0), 24);
    if (!out)
        return BP_CU_ILLEGAL_ADDRESS;
    memcpy(out, block->op->grid, 12);
    memcpy(out + 3, block->op->block, 12);
    return BP_CU_SUCCESS;
}

static bp_cu_result echo(const fake_block *block) {
    uint64_t *out = fake_host(block->context, word(block, 0), 32);
    if (!out)
        return BP_CU_ILLEGAL_ADDRESS;
    out[0] = block->op->parameters[8];
    out[1] = word(block, 16);
    out[2] = half(block, 24);
    out[3] = word(block, 32);
    return BP_CU_SUCCESS;
}

/* As kernels.ptx has it: nothing for a null address. */
static bp_cu_result store(const fake_block *block) {
    if (word(block, 0) == 0)
        return BP_CU_SUCCESS;
    uint32_t *at = fake_host(block->context, word(block, 0), 4);
    if (!at)
        return BP_CU_ILLEGAL_ADDRESS;
    *at = half(block, 8);
    return BP_CU_SUCCESS;
}

static bp_cu_result count_threads(const fake_block *block) {
    unsigned threads = block->op->block[0];
    uint32_t *out =
        fake_host(block->context, word(block, 0) + 4 * block->number * threads, 4 * threads);
    if (!out)
        return BP_CU_ILLEGAL_ADDRESS;
    for (unsigned i = 0; i < threads; i++)
        out[i]++;
    return BP_CU_SUCCESS;
}

static bp_cu_result use_shared(const fake_block *block) {
    uint32_t *out = fake_host(block->context, word(block, 0) + 4 * block->number, 4);
    uint32_t words = half(block, 8) / 4, same = 0;
    if (!out || words * 4 > block->op->shared_bytes)
        return BP_CU_ILLEGAL_ADDRESS;
    uint32_t *shared = (uint32_t *)(void *)block->shared;
    for (uint32_t i = 0; i < words; i++)
        shared[i] = (uint32_t)block->number;
    for (uint32_t i = 0; i < words; i++)
        same += shared[i] == (uint32_t)block->number;
    *out = same;
    return BP_CU_SUCCESS;
}

static bp_cu_result poke(const fake_block *block) {
    uint32_t *at = fake_host(block->context, word(block, 0), 4);
    if (!at)
        return BP_CU_ILLEGAL_ADDRESS;
    *at = half(block, 8);
    return BP_CU_SUCCESS;
}

static bp_cu_result stamp(const fake_block *block) {
    uint64_t *out = fake_host(block->context, word(block, 0), 8);
    struct timespec time;
    if (!out)
        return BP_CU_ILLEGAL_ADDRESS;
    clock_gettime(CLOCK_MONOTONIC, &time);
    *out = (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
    return BP_CU_SUCCESS;
}

/* convert.c's kernels: block b does row b, b + blocks, ... */
static bp_cu_result convert(const fake_block *block, unsigned x_bytes, unsigned out_bytes) {
    uint64_t rows = word(block, 24), width = word(block, 32);
    if (word(block, 16)) {
        const uint32_t *count = fake_host(block->context, word(block, 16), 4);
        if (!count)
            return BP_CU_ILLEGAL_ADDRESS;
        rows = *count < rows ? *count : rows;
    }
    for (uint64_t row = block->number; row < rows; row += block->op->grid[0]) {
        unsigned char *out = fake_host(
            block->context, word(block, 0) + row * word(block, 40) * out_bytes, width * out_bytes);
        const unsigned char *x = fake_host(
            block->context, word(block, 8) + row * word(block, 48) * x_bytes, width * x_bytes);
        if (!out || !x)
            return BP_CU_ILLEGAL_ADDRESS;
        for (uint64_t i = 0; i < width; i++) {
            uint32_t bits = 0;
            memcpy(&bits, x + i * x_bytes, x_bytes);
            if (x_bytes == 2)
                bits <<= 16;
            else if ((bits & 0x7fffffff) > 0x7f800000)
                bits = bits >> 16 | 0x40;
            else
                bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
            memcpy(out + i * out_bytes, &bits, out_bytes);
        }
    }
    return BP_CU_SUCCESS;
}

/* tensor_map.ptx: a tile of two dimensions of f32, zeros past the end. */
static bp_cu_result tensor_tile(const fake_block *block) {
    const uint64_t *map = (const uint64_t *)(const void *)block->op->parameters;
    uint32_t x = half(block, 136), y = half(block, 140), count = half(block, 144);
    uint32_t width = (uint32_t)map[11], step = (uint32_t)map[13];
    float *out = fake_host(block->context, word(block, 128), 4ull * count);
    if (!out || (uint32_t)map[1] != 2)
        return BP_CU_ILLEGAL_ADDRESS;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t column = x + (uint64_t)(i % width) * step, row = y + i / width;
        const float *at = fake_host(block->context, map[0] + row * map[7] + 4 * column, 4);
        out[i] = column < map[2] && row < map[3] && at ? *at : 0;
    }
    return BP_CU_SUCCESS;
}

static bp_cu_result narrow(const fake_block *block) {
    return convert(block, 4, 2);
}

static bp_cu_result widen(const fake_block *block) {
    return convert(block, 2, 4);
}

static const struct {
    const char *name;
    fake_body body;
    /* Sizes of the parameters, ended by 0. */
    unsigned char sizes[8];
} KERNELS[] = {
    {"nothing", nothing, {0}},
    {"count_blocks", count_blocks, {8}},
    {"scale", scale, {8, 8, 4, 4}},
    {"shape", shape, {8}},
    {"store", store, {8, 4}},
    {"count_threads", count_threads, {8}},
    {"echo", echo, {8, 1, 8, 4, 8}},
    {"use_shared", use_shared, {8, 4}},
    {"poke", poke, {8, 4}},
    {"bedplate_timestamp", stamp, {8}},
    {"bedplate_narrow", narrow, {8, 8, 8, 8, 8, 8, 8}},
    {"bedplate_widen", widen, {8, 8, 8, 8, 8, 8, 8}},
    {"tensor_tile", tensor_tile, {128, 8, 4, 4, 4}},
};

static int number_of(const char *name) {
    for (size_t i = 0; i < sizeof(KERNELS) / sizeof(KERNELS[0]); i++)
        if (strcmp(KERNELS[i].name, name) == 0)
            return (int)i;
    return -1;
}

unsigned fake_parameters(const char *kernel, const unsigned char **sizes) {
    int number = number_of(kernel);
    unsigned count = 0;
    *sizes = number < 0 ? (const unsigned char *)"" : KERNELS[number].sizes;
    while ((*sizes)[count])
        count++;
    return count;
}

bp_cu_result fake_run(bp_cu_context context, const fake_op *op) {
    static _Atomic long launches;
    int number = number_of(op->function->name);
    uint64_t blocks = (uint64_t)op->grid[0] * op->grid[1] * op->grid[2];
    if (++launches == fake_setting("fault_after", 0))
        return BP_CU_LAUNCH_FAILED;
    if (number < 0)
        return BP_CU_ILLEGAL_INSTRUCTION;
    fake_block block = {.context = context, .op = op};
    block.shared = op->shared_bytes ? malloc(op->shared_bytes) : NULL;
    bp_cu_result result = BP_CU_SUCCESS;
    for (; block.number < blocks && result == BP_CU_SUCCESS; block.number++)
        result = KERNELS[number].body(&block);
    free(block.shared);
    return result;
}

static bp_cu_result name_kernel(bp_cu_module module, const char *name, size_t length) {
    if (module->count == 64 || length == 0 || length > 63)
        return BP_CU_INVALID_IMAGE;
    memcpy(module->names[module->count], name, length);
    module->functions[module->count] =
        (struct bp_cu_function_s){module->names[module->count], module, 49152, 0};
    module->count++;
    return BP_CU_SUCCESS;
}

/* A cubin's kernels are its sections `.text.NAME`. */
static bp_cu_result parse_cubin(bp_cu_module module, const unsigned char *image) {
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)image;
    if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != 190)
        return BP_CU_INVALID_IMAGE;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(image + head->e_shoff);
    const char *strings = (const char *)image + sections[head->e_shstrndx].sh_offset;
    bp_cu_result result = BP_CU_SUCCESS;
    for (int i = 0; i < head->e_shnum && result == BP_CU_SUCCESS; i++) {
        const char *name = strings + sections[i].sh_name;
        if (strncmp(name, ".text.", 6) == 0)
            result = name_kernel(module, name + 6, strlen(name + 6));
    }
    return result;
}

/* Adds each `.entry NAME`; a module of none is no PTX. */
static bp_cu_result parse_text(bp_cu_module module, const char *text) {
    for (const char *at = strstr(text, ".entry"); at; at = strstr(at, ".entry")) {
        at += 6;
        while (isspace((unsigned char)*at))
            at++;
        size_t length = strcspn(at, " (\n{");
        if (name_kernel(module, at, length))
            return BP_CU_INVALID_PTX;
    }
    return module->count && strstr(text, ".version") ? BP_CU_SUCCESS : BP_CU_INVALID_PTX;
}

FAKE_API cuModuleLoadDataEx(bp_cu_module *out, const void *image, unsigned option_count,
                            int *options, void **values) {
    bp_cu_result result = fake_ready();
    if (result || !image)
        return result ? result : BP_CU_INVALID_VALUE;
    bp_cu_module module = calloc(1, sizeof(*module));
    if (!module)
        return BP_CU_OUT_OF_MEMORY;
    module->context = fake_current;
    int binary = memcmp(image, ELFMAG, SELFMAG) == 0;
    result = binary ? parse_cubin(module, image) : parse_text(module, image);
    for (unsigned i = 0; i < option_count && result; i++)
        if (options[i] == BP_CU_JIT_ERROR_LOG_BUFFER)
            strcpy(values[i], "ptxas application ptx input, line 1; fatal : no such PTX");
    *out = module;
    return result;
}

FAKE_API cuModuleUnload(bp_cu_module module) {
    if (!fake_dead)
        fake_wait_all(module->context);
    free(module);
    return BP_CU_SUCCESS;
}

FAKE_API cuModuleGetFunction(bp_cu_function *function, bp_cu_module module, const char *name) {
    for (unsigned i = 0; i < module->count; i++)
        if (strcmp(module->names[i], name) == 0) {
            *function = &module->functions[i];
            (*function)->loaded = 1;
            return fake_ready();
        }
    return BP_CU_NOT_FOUND;
}

FAKE_API cuModuleGetFunctionCount(unsigned *count, bp_cu_module module) {
    *count = module->count;
    return fake_ready();
}

FAKE_API cuModuleEnumerateFunctions(bp_cu_function *functions, unsigned room, bp_cu_module module) {
    for (unsigned i = 0; i < room && i < module->count; i++)
        functions[i] = &module->functions[i];
    return fake_ready();
}

FAKE_API cuFuncLoad(bp_cu_function function) {
    function->loaded = 1;
    return fake_ready();
}

FAKE_API cuFuncGetName(const char **name, bp_cu_function function) {
    *name = function->name;
    return fake_ready();
}

/* Where a kernel's parameters begin: one that is aligned to 64 lies 48 bytes in, as on sm_90, whose
 * parameters begin at 0x210. */
static size_t first_place(const unsigned char *sizes) {
    return sizes[0] == 128 ? 48 : 0;
}

FAKE_API cuFuncGetParamInfo(bp_cu_function function, size_t index, size_t *offset, size_t *bytes) {
    const unsigned char *sizes;
    size_t at = 0;
    if (index >= fake_parameters(function->name, &sizes))
        return BP_CU_INVALID_VALUE;
    for (size_t i = 0; i <= index; i++) {
        at = (at + sizes[i] - 1) / sizes[i] * sizes[i];
        *offset = first_place(sizes) + at;
        at += sizes[i];
    }
    *bytes = sizes[index];
    return fake_ready();
}

FAKE_API cuFuncGetAttribute(int *value, int attribute, bp_cu_function function) {
    if (!function->loaded)
        return BP_CU_FUNCTION_NOT_LOADED;
    *value = attribute == BP_CU_FUNC_MAX_THREADS_PER_BLOCK           ? 1024
             : attribute == BP_CU_FUNC_NUM_REGS                      ? 16
             : attribute == BP_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES ? function->max_shared
                                                                     : 0;
    return fake_ready();
}

FAKE_API cuFuncSetAttribute(bp_cu_function function, int attribute, int value) {
    if (attribute == BP_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        if (value < 0 || value > 232448)
            return BP_CU_INVALID_VALUE;
        function->max_shared = value;
    }
    return fake_ready();
}

/* Packs parameters as the driver does; `extra` gives them packed. */
static bp_cu_result pack(bp_cu_function function, void **parameters, void **extra, fake_op *op) {
    const unsigned char *sizes;
    unsigned count = fake_parameters(function->name, &sizes);
    uint64_t at = 0;
    for (unsigned i = 0; i < count; i++) {
        at = (at + sizes[i] - 1) / sizes[i] * sizes[i];
        if (parameters)
            memcpy(op->parameters + at, parameters[i], sizes[i]);
        at += sizes[i];
    }
    if (parameters || !extra)
        return count && !parameters ? BP_CU_INVALID_VALUE : BP_CU_SUCCESS;
    const void *buffer = NULL;
    size_t bytes = 0;
    for (; *extra != BP_CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == BP_CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == BP_CU_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = *(const size_t *)extra[1];
    }
    size_t first = first_place(sizes);
    if (bytes < first + at || bytes > sizeof(op->parameters))
        return BP_CU_INVALID_VALUE;
    memcpy(op->parameters, (const unsigned char *)buffer + first, bytes - first);
    return BP_CU_SUCCESS;
}

FAKE_API cuLaunchKernelEx(const bp_cu_launch_config *config, bp_cu_function function,
                          void **parameters, void **extra) {
    static const unsigned MOST_GRID[3] = {2147483647u, 65535, 65535};
    static const unsigned MOST_BLOCK[3] = {1024, 1024, 64};
    fake_op op = {.kind = FAKE_LAUNCH, .function = function, .shared_bytes = config->shared_bytes};
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        op.grid[i] = config->grid[i];
        op.block[i] = config->block[i];
        threads *= op.block[i];
        if (!op.grid[i] || !op.block[i] || op.grid[i] > MOST_GRID[i] || op.block[i] > MOST_BLOCK[i])
            return BP_CU_INVALID_VALUE;
    }
    if (threads > 1024 || config->shared_bytes > (unsigned)function->max_shared)
        return BP_CU_INVALID_VALUE;
    bp_cu_result result = pack(function, parameters, extra, &op);
    return result ? result : fake_enqueue(config->stream, &op);
}

FAKE_API cuLaunchKernel(bp_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        bp_cu_stream stream, void **parameters, void **extra) {
    bp_cu_launch_config config = {.grid = {grid_x, grid_y, grid_z},
                                  .block = {block_x, block_y, block_z},
                                  .shared_bytes = shared_bytes,
                                  .stream = stream};
    return cuLaunchKernelEx(&config, function, parameters, extra);
}

FAKE_API cuTensorMapEncodeTiled(bp_cu_tensor_map *map, uint32_t type, uint32_t rank, void *address,
                                const uint64_t *size, const uint64_t *stride, const uint32_t *box,
                                const uint32_t *step, uint32_t interleave, uint32_t swizzle,
                                uint32_t promotion, uint32_t out_of_bounds) {
    (void)promotion;
    (void)out_of_bounds;
    if (rank < 1 || rank > 5 || type > 12 || interleave > 2 || swizzle > 6 ||
        (uint64_t)(uintptr_t)address % 16 || (uint64_t)(uintptr_t)map % 64)
        return BP_CU_INVALID_VALUE;
    for (uint32_t i = 0; i < rank; i++)
        if (!size[i] || !box[i] || box[i] > 256 || !step[i] || step[i] > 8 ||
            (i + 1 < rank && stride[i] % 16))
            return BP_CU_INVALID_VALUE;
    memset(map, 0, sizeof(*map));
    /* Address; rank; five sizes; four strides; five boxes and swizzle in halves; first step. */
    map->opaque[0] = (uint64_t)(uintptr_t)address;
    map->opaque[1] = rank;
    memcpy(map->opaque + 2, size, rank * sizeof(*size));
    memcpy(map->opaque + 7, stride, (rank - 1) * sizeof(*stride));
    memcpy(map->opaque + 11, box, (rank < 4 ? rank : 4) * sizeof(*box));
    map->opaque[13] = step[0];
    map->opaque[14] = swizzle;
    return BP_CU_SUCCESS;
}
