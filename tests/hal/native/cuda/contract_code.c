/* The contract's cases about codes, limits, modules and memory. */
#include "contract.h"

#include <stdlib.h>
#include <string.h>

static int no_context_is_an_error(contract *c) {
    bp_cu_address address;
    bp_cu_context current;
    WORKS(bp_cu.context_set(NULL));
    WORKS(bp_cu.context_current(&current));
    HOLDS(current == NULL);
    WANT(bp_cu.memory_alloc(&address, 4096), BP_CU_INVALID_CONTEXT);
    WORKS(bp_cu.context_set(c->context));
    WORKS(bp_cu.context_current(&current));
    HOLDS(current == c->context);
    return 0;
}

/* The backend launches before it asks whose context is current, and again if it was refused. */
static int a_launch_without_a_context_runs_or_is_refused(contract *c) {
    struct {
        uint64_t address;
        uint32_t value;
    } poke = {c->word_at, 7};
    bp_cu_function kernel = contract_kernel(c, "poke");
    WORKS(bp_cu.function_load(kernel));
    WORKS(bp_cu.context_set(NULL));
    bp_cu_result result = contract_launch(kernel, c->one, &poke, 12);
    WORKS(bp_cu.context_set(c->context));
    WORKS(bp_cu.stream_synchronize(c->one));
    HOLDS(c->words[0] == (result == BP_CU_SUCCESS ? 7 : 0));
    if (result != BP_CU_SUCCESS)
        WANT(result, BP_CU_INVALID_CONTEXT);
    c->words[0] = 0;
    WORKS(contract_launch(kernel, c->one, &poke, 12));
    WORKS(bp_cu.stream_synchronize(c->one));
    HOLDS(c->words[0] == 7);
    return 0;
}

static int bad_ptx_has_a_log(contract *c) {
    char log[2048] = "";
    int options[] = {BP_CU_JIT_ERROR_LOG_BUFFER, BP_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
    bp_cu_module module;
    WANT(bp_cu.module_load(&module, ".version 7.0\n.target sm_70\nnonsense\n", 2, options, values),
         BP_CU_INVALID_PTX);
    HOLDS(strstr(log, "fatal") || strstr(log, "error"));
    return 0;
}

static int a_wrong_image_is_refused(contract *c) {
    char image[256] = "\x7f"
                      "ELF is not all of it";
    bp_cu_module module;
    bp_cu_result result = bp_cu.module_load(&module, image, 0, NULL, NULL);
    if (result != BP_CU_INVALID_IMAGE && result != BP_CU_NO_BINARY_FOR_GPU)
        return contract_fail(c, "a broken ELF gave %d", result);
    return 0;
}

static int an_unknown_kernel_is_not_found(contract *c) {
    bp_cu_function function;
    WANT(bp_cu.module_function(&function, c->module, "no_such_kernel"), BP_CU_NOT_FOUND);
    return 0;
}

static int a_module_lists_its_kernels(contract *c) {
    unsigned count = 0;
    bp_cu_function functions[16];
    const char *name = NULL;
    WORKS(bp_cu.module_function_count(&count, c->module));
    HOLDS(count == 5);
    WORKS(bp_cu.module_functions(functions, count, c->module));
    WORKS(bp_cu.function_name(&name, functions[0]));
    HOLDS(name && strlen(name) > 3);
    return 0;
}

/* Unloaded, some driver versions refuse to tell of it (913), and not for every kernel. */
static int a_loaded_kernel_tells_of_itself(contract *c) {
    bp_cu_function functions[5];
    WORKS(bp_cu.module_functions(functions, 5, c->module));
    for (int i = 0; i < 5; i++) {
        int registers = 0;
        WORKS(bp_cu.function_load(functions[i]));
        WORKS(bp_cu.function_attribute(&registers, BP_CU_FUNC_NUM_REGS, functions[i]));
        HOLDS(registers > 0);
    }
    return 0;
}

static int parameters_are_told(contract *c) {
    size_t offset = 99, bytes = 99;
    bp_cu_function echo = contract_kernel(c, "echo");
    WORKS(bp_cu.function_parameter(echo, 1, &offset, &bytes));
    HOLDS(offset == 8 && bytes == 1);
    WORKS(bp_cu.function_parameter(echo, 4, &offset, &bytes));
    HOLDS(offset == 32 && bytes == 8);
    WANT(bp_cu.function_parameter(echo, 5, &offset, &bytes), BP_CU_INVALID_VALUE);
    WANT(bp_cu.function_parameter(contract_kernel(c, "nothing"), 0, &offset, &bytes),
         BP_CU_INVALID_VALUE);
    return 0;
}

static int packed_parameters_arrive(contract *c) {
    struct {
        uint64_t out;
        uint8_t a;
        uint64_t b;
        uint32_t value;
        uint64_t d;
    } packed = {c->word_at, 9, 1ull << 40, 77, 5};
    WORKS(contract_launch(contract_kernel(c, "echo"), c->one, &packed, sizeof(packed)));
    WORKS(bp_cu.stream_synchronize(c->one));
    HOLDS(c->words[0] == 9 && c->words[1] == 1ull << 40 && c->words[2] == 77 && c->words[3] == 5);
    return 0;
}

static int too_large_launches_are_refused(contract *c) {
    bp_cu_function nothing = contract_kernel(c, "nothing");
    WANT(bp_cu.launch(nothing, 1, 1, 1, 2048, 1, 1, 0, c->one, NULL, NULL), BP_CU_INVALID_VALUE);
    WANT(bp_cu.launch(nothing, 1, 65536, 1, 1, 1, 1, 0, c->one, NULL, NULL), BP_CU_INVALID_VALUE);
    WANT(bp_cu.launch(nothing, 1, 1, 1, 1, 1, 128, 0, c->one, NULL, NULL), BP_CU_INVALID_VALUE);
    WANT(bp_cu.launch(nothing, 0, 1, 1, 1, 1, 1, 0, c->one, NULL, NULL), BP_CU_INVALID_VALUE);
    WORKS(bp_cu.launch(nothing, 1, 65535, 1, 1024, 1, 1, 0, c->one, NULL, NULL));
    WORKS(bp_cu.stream_synchronize(c->one));
    return 0;
}

static int much_shared_memory_is_asked_for(contract *c) {
    int most = 0;
    bp_cu_function kernel = contract_kernel(c, "use_shared");
    WORKS(bp_cu.device_attribute(&most, BP_CU_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
    HOLDS(most >= 65536);
    struct {
        uint64_t out;
        uint32_t bytes;
    } packed = {c->word_at, 65536};
    size_t bytes = 12;
    void *extra[] = {BP_CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, BP_CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, BP_CU_LAUNCH_PARAM_END};
    WANT(bp_cu.launch(kernel, 1, 1, 1, 1, 1, 1, 65536, c->one, NULL, extra), BP_CU_INVALID_VALUE);
    WORKS(bp_cu.function_set(kernel, BP_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
    WORKS(bp_cu.launch(kernel, 1, 1, 1, 1, 1, 1, 65536, c->one, NULL, extra));
    WORKS(bp_cu.stream_synchronize(c->one));
    HOLDS((uint32_t)c->words[0] == 16384);
    WANT(bp_cu.function_set(kernel, BP_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1),
         BP_CU_INVALID_VALUE);
    return 0;
}

static int too_much_memory_is_refused(contract *c) {
    bp_cu_address address;
    size_t total = 0;
    WORKS(bp_cu.device_memory(&total, 0));
    WANT(bp_cu.memory_alloc(&address, total + 1), BP_CU_OUT_OF_MEMORY);
    WANT(bp_cu.memory_alloc(&address, 0), BP_CU_INVALID_VALUE);
    WORKS(bp_cu.memory_alloc(&address, 1));
    HOLDS(address % 256 == 0);
    WORKS(bp_cu.memory_free(address));
    return 0;
}

static int registered_memory_is_the_callers(contract *c) {
    unsigned char *host = aligned_alloc(4096, 8192);
    HOLDS(host);
    memset(host, 3, 8192);
    bp_cu_address at;
    WORKS(bp_cu.host_register(host + 5, 100,
                              BP_CU_MEMHOSTREGISTER_PORTABLE | BP_CU_MEMHOSTREGISTER_DEVICEMAP));
    WORKS(bp_cu.host_address(&at, host + 5, 0));
    WORKS(bp_cu.fill_8(at, 9, 100, c->one));
    WORKS(bp_cu.stream_synchronize(c->one));
    HOLDS(host[4] == 3 && host[5] == 9 && host[104] == 9 && host[105] == 3);
    WANT(bp_cu.host_register(host + 5, 100, BP_CU_MEMHOSTREGISTER_PORTABLE),
         BP_CU_HOST_MEMORY_ALREADY_REGISTERED);
    WANT(bp_cu.host_register(host, 10, BP_CU_MEMHOSTREGISTER_PORTABLE),
         BP_CU_HOST_MEMORY_ALREADY_REGISTERED);
    WORKS(bp_cu.host_unregister(host + 5));
    WANT(bp_cu.host_address(&at, host + 5, 0), BP_CU_INVALID_VALUE);
    /* The driver's own host memory needs no registering, and takes none. */
    WANT(bp_cu.host_register((void *)(uintptr_t)c->words, 4096, BP_CU_MEMHOSTREGISTER_PORTABLE),
         BP_CU_INVALID_VALUE);
    free(host);
    return 0;
}

static int virtual_memory_maps(contract *c) {
    bp_cu_allocation_wish wish = {.type = BP_CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {BP_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    bp_cu_access access = {.location = {BP_CU_MEM_LOCATION_TYPE_DEVICE, 0},
                           .flags = BP_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    size_t granularity = 0;
    bp_cu_address at = 0;
    bp_cu_allocation allocation;
    WORKS(bp_cu.allocation_granularity(&granularity, &wish, BP_CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    WANT(bp_cu.address_reserve(&at, granularity + 1, 0, 0, 0), BP_CU_INVALID_VALUE);
    WORKS(bp_cu.address_reserve(&at, 2 * granularity, 0, 0, 0));
    WORKS(bp_cu.allocation_create(&allocation, granularity, &wish, 0));
    for (int turn = 0; turn < 2; turn++) {
        bp_cu_address place = at + (turn ? granularity : 0);
        WORKS(bp_cu.address_map(place, granularity, 0, allocation, 0));
        WORKS(bp_cu.address_access(place, granularity, &access, 1));
        if (turn == 0)
            WORKS(bp_cu.fill_32(place, 6, 2, c->one));
        WORKS(bp_cu.copy(c->word_at, place, 8, c->one));
        WORKS(bp_cu.stream_synchronize(c->one));
        /* The bytes are the allocation's, wherever it is mapped. */
        HOLDS(c->words[0] == 0x0000000600000006ull);
        c->words[0] = 0;
        WORKS(bp_cu.address_unmap(place, granularity));
    }
    WORKS(bp_cu.allocation_release(allocation));
    WORKS(bp_cu.address_free(at, 2 * granularity));
    return 0;
}

static int pool_memory_follows_its_stream(contract *c) {
    bp_cu_address first, second;
    WORKS(bp_cu.pool_alloc(&first, 1 << 20, c->one));
    WORKS(bp_cu.fill_32(first, 1, 64, c->one));
    WORKS(bp_cu.copy(c->word_at, first, 8, c->one));
    WORKS(bp_cu.pool_free(first, c->one));
    WORKS(bp_cu.pool_alloc(&second, 1 << 20, c->one));
    WORKS(bp_cu.fill_32(second, 2, 64, c->one));
    WORKS(bp_cu.copy(c->word_at + 8, second, 8, c->one));
    WORKS(bp_cu.pool_free(second, c->one));
    WORKS(bp_cu.stream_synchronize(c->one));
    HOLDS(c->words[0] == 0x0000000100000001ull && c->words[1] == 0x0000000200000002ull);
    return 0;
}

static int errors_have_words(contract *c) {
    char words[200];
    bp_cuda_words(BP_CU_ILLEGAL_ADDRESS, words, sizeof(words));
    HOLDS(strstr(words, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    HOLDS(strstr(words, "illegal memory access"));
    return 0;
}

static int misaligned_fills_are_refused(contract *c) {
    WANT(bp_cu.fill_32(c->bytes + 2, 0, 1, c->one), BP_CU_INVALID_VALUE);
    WORKS(bp_cu.fill_32(c->bytes, 0, 1, c->one));
    WORKS(bp_cu.stream_synchronize(c->one));
    return 0;
}

const contract_case contract_code[] = {
    {"no_context_is_an_error", no_context_is_an_error},
    {"a_launch_without_a_context_runs_or_is_refused",
     a_launch_without_a_context_runs_or_is_refused},
    {"bad_ptx_has_a_log", bad_ptx_has_a_log},
    {"a_wrong_image_is_refused", a_wrong_image_is_refused},
    {"an_unknown_kernel_is_not_found", an_unknown_kernel_is_not_found},
    {"a_module_lists_its_kernels", a_module_lists_its_kernels},
    {"a_loaded_kernel_tells_of_itself", a_loaded_kernel_tells_of_itself},
    {"parameters_are_told", parameters_are_told},
    {"packed_parameters_arrive", packed_parameters_arrive},
    {"too_large_launches_are_refused", too_large_launches_are_refused},
    {"much_shared_memory_is_asked_for", much_shared_memory_is_asked_for},
    {"too_much_memory_is_refused", too_much_memory_is_refused},
    {"registered_memory_is_the_callers", registered_memory_is_the_callers},
    {"virtual_memory_maps", virtual_memory_maps},
    {"pool_memory_follows_its_stream", pool_memory_follows_its_stream},
    {"errors_have_words", errors_have_words},
    {"misaligned_fills_are_refused", misaligned_fills_are_refused},
    {NULL, NULL},
};
