/// \file
/// Conditions on the columns of a dataset, which are applied while files are read: rows that cannot meet them are not
/// even decoded.
///
///     data::read_parquet("trips/").filter(data::column("fare") > 10 && !is_null(data::column("city")))
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include "cadre/value.h"

namespace cadre::data {

/// A condition, or an operand of conditions. A value that can be stored.
///
/// As in SQL, a comparison with null is null, `&&` and `||` are Kleene's, and a row whose condition is null is not
/// kept. NaN equals nothing and is neither less nor greater than anything. A text that is compared with a column of
/// dates, times or decimals is converted to its type: "2024-12-31", "2024-12-31 23:59:59", with a trailing "Z" if the
/// column has a time zone.
class Expression {
 public:
  /// Makes a constant: a bool, a number or a text.
  template <class T>
    requires std::constructible_from<Value, T> && (!std::same_as<std::remove_cvref_t<T>, Expression>)
  Expression(T&& constant) : Expression(Stored{}, Value{{"value", Value(std::forward<T>(constant))}}) {}

  /// Returns the expression that to_value() has stored. Throws InvalidArgument if the value is not an expression.
  static Expression from_value(const Value& stored);
  /// Returns the expression as a value for from_value().
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

Expression column(const std::string& name);                       ///< stands for the value of a column in each row
Expression operator==(const Expression& a, const Expression& b);  ///< holds if a equals b
Expression operator!=(const Expression& a, const Expression& b);  ///< holds if a does not equal b
Expression operator<(const Expression& a, const Expression& b);   ///< holds if a is less than b
Expression operator<=(const Expression& a, const Expression& b);  ///< holds if a is less than or equal to b
Expression operator>(const Expression& a, const Expression& b);   ///< holds if a is greater than b
Expression operator>=(const Expression& a, const Expression& b);  ///< holds if a is greater than or equal to b
Expression operator&&(const Expression& a, const Expression& b);  ///< holds if both hold; both are evaluated
Expression operator||(const Expression& a, const Expression& b);  ///< holds if one of them holds; both are evaluated
Expression operator!(const Expression& a);                        ///< holds if a does not
Expression is_null(const Expression& a);                          ///< holds if a has no value; the result is never null
Expression is_nan(const Expression& a);                           ///< holds if a is NaN

}  // namespace cadre::data
