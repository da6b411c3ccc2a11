/*
 * Every order of a small program, on a device of numbers, in one thread.
 *
 * Hosts submit, signal and wait; queues run what was submitted by the worker's own rule
 * (order.hpp). From each state the steps that can be made are tried depth first, in an order drawn
 * from the seed; a state that was reached before in as few steps is not looked at again. A find
 * bounds the search from then on, so that the schedule in the end is the shortest there is, if the
 * search was complete. With `walks` it draws whole schedules instead, for programs too large.
 */
#ifndef BEDPLATE_STREAM_EXPLORE_HPP
#define BEDPLATE_STREAM_EXPLORE_HPP

#include <bedplate/streams.h>
#include <string>

namespace bp::stream {

/* BP_OK, or BP_INVALID_ARGUMENT for a program that refers to what it has not. Throws bad_alloc. */
int32_t explore(const bp_runtime_program &program, const bp_runtime_explore_options &options,
                bp_runtime_explored &out, std::string &told);

} // namespace bp::stream

#endif
