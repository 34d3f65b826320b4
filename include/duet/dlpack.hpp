/* dlpack.hpp - exchanges matrices with other libraries by DLPack, in C++17: duet.hpp with dlpack.h.
 *
 *     duet::tensor t = duet::to_dlpack(x);              // its deleter is called in the end
 *     library_that_takes_it(t.release());
 *     duet::matrix y = duet::from_dlpack(std::move(t)); // of a tensor from another library */
#ifndef DUET_DLPACK_HPP
#define DUET_DLPACK_HPP

#include <duet/dlpack.h>
#include <duet/duet.hpp>
#include <memory>

namespace duet
{
struct tensor_deleter {
    template <class T> void operator()(T *t) const noexcept
    {
        if (t->deleter) t->deleter(t);
    }
};
using tensor = std::unique_ptr<struct ::DLManagedTensorVersioned, tensor_deleter>;
using legacy_tensor = std::unique_ptr<struct ::DLManagedTensor, tensor_deleter>;

/* The functions of dlpack.h. Errors are exceptions, as in duet.hpp; the tensor is then still the caller's. */
inline tensor to_dlpack(matrix &x, const duet_dlpack_options &options = {}, location w = location::here())
{
    return tensor(detail::check((duet_to_dlpack)(x.get(), &options), w));
}
inline legacy_tensor to_dlpack_legacy(matrix &x, const duet_dlpack_options &options = {},
                                      location w = location::here())
{
    return legacy_tensor(detail::check((duet_to_dlpack_legacy)(x.get(), &options), w));
}
inline matrix from_dlpack(tensor &&t, intptr_t stream = DUET_DLPACK_LEGACY, location w = location::here())
{
    matrix m(detail::made((duet_from_dlpack)(t.get(), stream), w));
    if (m.get()) (void)t.release();
    return m;
}
inline matrix from_dlpack(legacy_tensor &&t, intptr_t stream = DUET_DLPACK_LEGACY,
                          location w = location::here())
{
    matrix m(detail::made((duet_from_dlpack_legacy)(t.get(), stream), w));
    if (m.get()) (void)t.release();
    return m;
}
} // namespace duet

#endif
