// Several lambdas as one visitor of a std::variant.
#pragma once

namespace cadre::base {

template <class... T>
struct Overload : T... {
  using T::operator()...;
};
template <class... T>
Overload(T...) -> Overload<T...>;

}  // namespace cadre::base
