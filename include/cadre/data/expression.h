/// \file
/// Conditions on the columns of a dataset, which files are read by: rows that cannot meet them are not even decoded.
///
///     data::read_parquet("trips/").filter(data::column("fare") > 10 && !is_null(data::column("city")))
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include "cadre/value.h"

namespace cadre::data {

/// A condition, or what conditions are made of. A value that can be stored.
///
/// As in SQL a comparison with null is null, `&&` and `||` are Kleene's, and a row whose condition is null is not kept.
/// NaN equals nothing and is neither less nor greater than anything. A text that is compared with a column of dates,
/// times or decimals is one: "2024-12-31", "2024-12-31 23:59:59", with "Z" behind it where the column has a time zone.
class Expression {
 public:
  /// A constant: a bool, a number or a text.
  template <class T>
    requires std::constructible_from<Value, T> && (!std::same_as<std::remove_cvref_t<T>, Expression>)
  Expression(T&& constant) : Expression(Stored{}, Value{{"value", Value(std::forward<T>(constant))}}) {}

  /// What it was stored as. Throws InvalidArgument where that is none.
  static Expression from_value(const Value& stored);
  /// For from_value.
  const Value& to_value() const { return stored_; }

 private:
  struct Stored {};
  Expression(Stored, Value stored) : stored_(std::move(stored)) {}
  static Expression call(const char* function, const Expression& a);
  static Expression call(const char* function, const Expression& a, const Expression& b);

  Value stored_;

  friend Expression column(const std::string& name);
  friend Expression operator==(const Expression& a, const Expression& b);
  friend Expression operator!=(const Expression& a, const Expression& b);
  friend Expression operator<(const Expression& a, const Expression& b);
  friend Expression operator<=(const Expression& a, const Expression& b);
  friend Expression operator>(const Expression& a, const Expression& b);
  friend Expression operator>=(const Expression& a, const Expression& b);
  friend Expression operator&&(const Expression& a, const Expression& b);
  friend Expression operator||(const Expression& a, const Expression& b);
  friend Expression operator!(const Expression& a);
  friend Expression is_null(const Expression& a);
  friend Expression is_nan(const Expression& a);
};

Expression column(const std::string& name);                       ///< the value of a column in each row
Expression operator==(const Expression& a, const Expression& b);  ///< a is b
Expression operator!=(const Expression& a, const Expression& b);  ///< a is another than b
Expression operator<(const Expression& a, const Expression& b);   ///< a is less than b
Expression operator<=(const Expression& a, const Expression& b);  ///< a is less than b or equal
Expression operator>(const Expression& a, const Expression& b);   ///< a is greater than b
Expression operator>=(const Expression& a, const Expression& b);  ///< a is greater than b or equal
Expression operator&&(const Expression& a, const Expression& b);  ///< both; both are evaluated
Expression operator||(const Expression& a, const Expression& b);  ///< one of them; both are evaluated
Expression operator!(const Expression& a);                        ///< not a
Expression is_null(const Expression& a);                          ///< a has no value; never null itself
Expression is_nan(const Expression& a);                           ///< a is NaN

}  // namespace cadre::data
