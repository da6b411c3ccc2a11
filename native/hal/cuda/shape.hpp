/* For check.cpp and check_blas.cpp: whether two functions take parameters of the same number, sizes
 * and pointerness. */
#ifndef BEDPLATE_HAL_CUDA_SHAPE_HPP
#define BEDPLATE_HAL_CUDA_SHAPE_HPP

#include <type_traits>

template <typename Function> struct Shape;
template <typename Result, typename... Parameters> struct Shape<Result (*)(Parameters...)> {
    static constexpr int count = sizeof...(Parameters);
    static constexpr int sizes[] = {sizeof(Parameters)..., 0};
    static constexpr bool pointers[] = {std::is_pointer_v<Parameters>..., false};
};

template <typename Ours, typename Theirs> constexpr bool same_shape() {
    if (Shape<Ours>::count != Shape<Theirs>::count)
        return false;
    for (int i = 0; i < Shape<Ours>::count; i++)
        if (Shape<Ours>::sizes[i] != Shape<Theirs>::sizes[i] ||
            Shape<Ours>::pointers[i] != Shape<Theirs>::pointers[i])
            return false;
    return true;
}

#endif
