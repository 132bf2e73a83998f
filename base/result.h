#pragma once

#include <cassert>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.h"

namespace fuse {

// What something that can fail came to: a T or an Error.  Member names follow
// std::expected, which g++ 12 has only in C++23.  A temporary Result hands out
// its value by value, so `for (auto& x : *list())` does not dangle.
template <class T>
class [[nodiscard]] Result {
  static_assert(!std::is_same_v<T, bool>, "return an enum: `if (result)` would hide the bool");

 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(*-explicit-*)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(*-explicit-*)

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  const T& value() const& { return *present(std::get_if<0>(&state_)); }
  T& value() & { return *present(std::get_if<0>(&state_)); }
  T value() && { return std::move(*present(std::get_if<0>(&state_))); }
  const Error& error() const& { return *present(std::get_if<1>(&state_)); }
  Error error() && { return std::move(*present(std::get_if<1>(&state_))); }

  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

 private:
  template <class P>
  static P* present(P* pointer) {
    assert(pointer != nullptr && "took the value of an error, or the error of a value");
    return pointer;
  }

  std::variant<T, Error> state_;
};

// What something came to that yields nothing but success: `return {};`.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(*-explicit-*)

  [[nodiscard]] bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] const Error& error() const {
    assert(error_.has_value() && "took the error of a success");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace fuse
