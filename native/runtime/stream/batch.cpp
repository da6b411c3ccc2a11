/* Deep copies of batches; see batch.hpp. Two passes over the same walk: one counts, one places. */
#include "batch.hpp"

#include "failure.hpp"

#include <cstring>

namespace bp::stream {

namespace {

constexpr uint32_t MOST = 1u << 16; /* fences, commands, arguments: more is a wrong pointer */

/* Takes bytes, and says where they lie; without storage it only counts. */
class Sink {
  public:
    explicit Sink(std::byte *storage) : storage_(storage) {}
    void *place(const void *from, size_t bytes) noexcept {
        std::byte *to = storage_ ? storage_ + used : nullptr;
        if (to && from && bytes)
            memcpy(to, from, bytes);
        used += (bytes + 7) & ~size_t{7};
        return to;
    }
    size_t used = 0;

  private:
    std::byte *storage_;
};

/* A struct by the size rule: what the caller does not know is zero. */
template <typename Struct> Struct read(const void *given, uint32_t size) noexcept {
    Struct out = {};
    memcpy(static_cast<void *>(&out), given, size < sizeof(Struct) ? size : sizeof(Struct));
    return out;
}

/* A pointer inside a copied struct, which may be too short to have it. */
template <typename Value>
void patch(void *copy, uint32_t size, size_t offset, const Value &value) noexcept {
    if (copy && offset + sizeof(value) <= size)
        memcpy(static_cast<std::byte *>(copy) + offset, &value, sizeof(value));
}

int32_t walk_launch(Sink &sink, const bp_command *given, void *to) {
    uint32_t size = given->head.struct_size;
    auto launch = read<bp_launch_command>(given, size);
    if (launch.argument_count > MOST || (launch.argument_count && !launch.arguments))
        return fail(BP_INVALID_ARGUMENT, "a launch has %u arguments at %p", launch.argument_count,
                    static_cast<const void *>(launch.arguments));
    auto *arguments = static_cast<bp_argument *>(
        sink.place(launch.arguments, launch.argument_count * sizeof(bp_argument)));
    patch(to, size, offsetof(bp_launch_command, arguments), arguments);
    for (uint32_t i = 0; i < launch.argument_count; i++) {
        const bp_argument &argument = launch.arguments[i];
        if (argument.kind != BP_ARGUMENT_BYTES)
            continue;
        if (argument.bytes > BP_MAX_LAUNCH_PARAMETER_BYTES || (argument.bytes && !argument.data))
            return fail(BP_INVALID_ARGUMENT, "argument %u has %u bytes at %p", i, argument.bytes,
                        argument.data);
        void *data = sink.place(argument.data, argument.bytes);
        if (arguments)
            arguments[i].data = data;
    }
    return BP_OK;
}

int32_t walk_command(Sink &sink, const bp_command *given, void *&to) {
    uint32_t size = given ? given->head.struct_size : 0;
    if (size < sizeof(bp_command) || size > MOST)
        return fail(BP_INVALID_ARGUMENT, "a command of %u bytes", size);
    to = sink.place(given, size);
    if (given->kind == BP_COMMAND_LAUNCH)
        return walk_launch(sink, given, to);
    if (given->kind == BP_COMMAND_OP) {
        auto op = read<bp_op_command>(given, size);
        if (op.binding_count > MOST || (op.binding_count && !op.bindings))
            return fail(BP_INVALID_ARGUMENT, "an op has %u bindings at %p", op.binding_count,
                        static_cast<const void *>(op.bindings));
        void *bindings = sink.place(op.bindings, op.binding_count * sizeof(bp_range));
        patch(to, size, offsetof(bp_op_command, bindings), bindings);
        return BP_OK;
    }
    if (given->kind != BP_COMMAND_COPY && given->kind != BP_COMMAND_FILL &&
        given->kind != BP_COMMAND_TIMESTAMP)
        return fail(BP_UNSUPPORTED,
                    "a command of kind %u cannot be kept: what it points to is "
                    "not known here",
                    given->kind);
    return BP_OK;
}

int32_t walk(Sink &sink, const bp_batch &given, bp_batch &out) {
    out.wait = static_cast<bp_fence *>(sink.place(given.wait, given.wait_count * sizeof(bp_fence)));
    auto *signals =
        static_cast<bp_fence *>(sink.place(nullptr, (given.signal_count + 1) * sizeof(bp_fence)));
    if (signals && given.signal_count)
        memcpy(signals, given.signal, given.signal_count * sizeof(bp_fence));
    out.signal = signals;
    auto **commands =
        static_cast<const bp_command **>(sink.place(nullptr, given.command_count * sizeof(void *)));
    out.commands = commands;
    for (uint32_t i = 0; i < given.command_count; i++) {
        void *to = nullptr;
        int32_t status = walk_command(sink, given.commands[i], to);
        if (status)
            return status;
        if (commands)
            commands[i] = static_cast<const bp_command *>(to);
    }
    return BP_OK;
}

int32_t check(const bp_batch *given, bp_batch &out) {
    uint32_t size = given ? given->head.struct_size : 0;
    if (size < sizeof(bp_head) || size > MOST)
        return fail(BP_INVALID_ARGUMENT, "a batch of %u bytes", size);
    out = read<bp_batch>(given, size);
    for (size_t i = sizeof(bp_batch); i < size; i++)
        if (reinterpret_cast<const std::byte *>(given)[i] != std::byte{0})
            return fail(BP_INVALID_EXT, "byte %zu of a batch, which is not known here, is not 0",
                        i);
    if (out.wait_count > MOST || out.signal_count > MOST || out.command_count > MOST)
        return fail(BP_INVALID_ARGUMENT, "a batch has %u waits, %u signals and %u commands",
                    out.wait_count, out.signal_count, out.command_count);
    if ((out.wait_count && !out.wait) || (out.signal_count && !out.signal) ||
        (out.command_count && !out.commands))
        return fail(BP_INVALID_ARGUMENT, "a batch counts fences or commands that it does not have");
    return BP_OK;
}

} // namespace

int32_t Batch::copy(const bp_batch *given) {
    bp_batch whole;
    int32_t status = check(given, whole);
    if (status)
        return status;
    described = whole;
    described.head.struct_size = sizeof(described);
    Sink count(nullptr);
    status = walk(count, whole, described);
    if (status)
        return status;
    if (count.used > room) {
        storage.reset();
        room = 0;
        storage.reset(new std::byte[count.used * 2]);
        room = count.used * 2;
    }
    Sink sink(storage.get());
    walk(sink, whole, described);
    described.signal_count = whole.signal_count + 1;
    return BP_OK;
}

void Batch::set_own(const bp_fence &fence) noexcept {
    const_cast<bp_fence *>(described.signal)[described.signal_count - 1] = fence;
}

} // namespace bp::stream
