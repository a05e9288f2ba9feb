#include "data/expressions.h"

#include <arrow/compute/api.h>
#include <arrow/datum.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "data/arrow_status.h"
#include "data/compute.h"

namespace cadre::data {
namespace {

namespace cp = arrow::compute;

// The functions of conditions, by Arrow's names, with their numbers of operands.
struct Function {
  std::string_view name;
  std::size_t operands;
};
constexpr std::array kFunctions{Function{"equal", 2},      Function{"not_equal", 2}, Function{"less", 2},
                                Function{"less_equal", 2}, Function{"greater", 2},   Function{"greater_equal", 2},
                                Function{"and_kleene", 2}, Function{"or_kleene", 2}, Function{"invert", 1},
                                Function{"is_null", 1},    Function{"is_nan", 1}};

void require_expression(const Value& stored) {
  const auto refuse = [&] { throw InvalidArgument("the value " + to_json(stored) + " is no condition"); };
  if (!stored.is_dict() || stored.dict().empty()) refuse();
  const auto& [kind, content] = stored.dict().front();
  if (kind == "column" && content.is_string()) return;
  if (kind == "value" && (content.is_bool() || content.is_number() || content.is_string())) return;
  const auto function = std::ranges::find(kFunctions, kind, &Function::name);
  if (function == kFunctions.end() || !content.is_list() || content.items().size() != function->operands) refuse();
  for (const Value& operand : content.items()) require_expression(operand);
}

bool takes_texts(const arrow::DataType& type) {
  return arrow::is_date(type.id()) || arrow::is_time(type.id()) || type.id() == arrow::Type::TIMESTAMP ||
         arrow::is_decimal(type.id());
}

// Converts a constant that is compared with values of a type; nullptr: the type is unknown.
cp::Expression to_literal(const Value& constant, const arrow::DataType* type) {
  if (constant.is_bool()) return cp::literal(constant.get<bool>());
  if (constant.is_double()) return cp::literal(constant.get<double>());
  if (constant.is_string()) {
    const auto text = constant.get<std::string>();
    if (type == nullptr || !takes_texts(*type)) return cp::literal(text);
    const std::string doing = fmt::format("a filter compares a column of {} with \"{}\"", type->ToString(), text);
    if (arrow::is_time(type->id()))
      return cp::literal(checked(arrow::Scalar::Parse(type->GetSharedPtr(), text), doing));
    return cp::literal(checked(cp::Cast(arrow::Datum(text), type->GetSharedPtr()), doing));
  }
  const auto integer = constant.get<std::int64_t>();
  if (type != nullptr && (arrow::is_decimal(type->id()) || arrow::is_floating(type->id())))
    return cp::literal(static_cast<double>(integer));
  // With a signed 64-bit literal, Arrow would convert the column to signed numbers.
  const bool is_unsigned = type != nullptr && type->id() == arrow::Type::UINT64 && integer >= 0;
  return is_unsigned ? cp::literal(static_cast<std::uint64_t>(integer)) : cp::literal(integer);
}

// Returns the type of an operand that is a column; nullptr: it is not a column.
const arrow::DataType* type_of(const Value& operand, const arrow::Schema& schema) {
  const auto& [kind, content] = operand.dict().front();
  if (kind != "column") return nullptr;
  const auto field = schema.GetFieldByName(content.get<std::string>());
  if (field == nullptr) return nullptr;
  return field->type()->id() == arrow::Type::DICTIONARY
             ? static_cast<const arrow::DictionaryType&>(*field->type()).value_type().get()
             : field->type().get();
}

bool is_comparison(std::string_view function) {
  return function == "equal" || function == "not_equal" || function.starts_with("less") ||
         function.starts_with("greater");
}

// Returns the comparison that holds for b and a where this one holds for a and b.
std::string mirrored(const std::string& function) {
  if (function.starts_with("less")) return "greater" + function.substr(4);
  if (function.starts_with("greater")) return "less" + function.substr(7);
  return function;
}

// Returns a comparison of integers with a number that their type may not have. Arrow would convert both to one type,
// and refuse values that it does not have.
cp::Expression compare_integers(const std::string& function, const cp::Expression& column, const Value& constant,
                                const arrow::DataType& type) {
  const bool is_unsigned = type.id() == arrow::Type::UINT64;  // smaller ones fit into signed numbers
  const bool wants_less = function.starts_with("less");
  const bool wants_greater = function.starts_with("greater");
  const bool wants_other = function == "not_equal";
  const auto always = [&](bool result) {  // null for null
    const auto least =
        is_unsigned ? cp::literal(std::uint64_t{0}) : cp::literal(std::numeric_limits<std::int64_t>::min());
    return cp::call(result ? "greater_equal" : "less", {column, least});
  };
  if (constant.is_integer()) {
    if (is_unsigned && constant.get<std::int64_t>() < 0) return always(wants_greater || wants_other);
    return cp::call(function, {column, to_literal(constant, &type)});
  }
  const auto number = constant.get<double>();
  const double whole = std::floor(number);
  if (std::isnan(number)) return always(wants_other);
  if (whole < (is_unsigned ? 0.0 : -0x1p63)) return always(wants_greater || wants_other);
  if (whole >= (is_unsigned ? 0x1p64 : 0x1p63)) return always(wants_less || wants_other);
  const auto below =
      is_unsigned ? cp::literal(static_cast<std::uint64_t>(whole)) : cp::literal(static_cast<std::int64_t>(whole));
  if (whole == number) return cp::call(function, {column, below});
  if (!wants_less && !wants_greater) return always(wants_other);
  return cp::call(wants_less ? "less_equal" : "greater", {column, below});
}

cp::Expression to_arrow(const Value& stored, const arrow::Schema& schema, const arrow::DataType* beside = nullptr) {
  const auto& [kind, content] = stored.dict().front();
  if (kind == "column") return cp::field_ref(arrow::FieldRef(content.get<std::string>()));
  if (kind == "value") return to_literal(content, beside);
  const List& given = content.items();
  for (std::size_t i = 0; is_comparison(kind) && i < 2; ++i) {
    const arrow::DataType* const type = type_of(given[i], schema);
    const auto& [kind_of_other, constant] = given[1 - i].dict().front();
    if (type != nullptr && arrow::is_integer(type->id()) && kind_of_other == "value" && constant.is_number())
      return compare_integers(i == 0 ? kind : mirrored(kind), to_arrow(given[i], schema), constant, *type);
  }
  std::vector<cp::Expression> operands;
  for (const Value& operand : given) {
    const Value& other = &operand == &given.front() ? given.back() : given.front();
    operands.push_back(to_arrow(operand, schema, type_of(other, schema)));
  }
  return cp::call(kind, std::move(operands));
}

void add_columns(const Value& stored, std::vector<std::string>& columns) {
  const auto& [kind, content] = stored.dict().front();
  if (kind == "column") {
    const auto name = content.get<std::string>();
    if (std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
  } else if (content.is_list()) {
    for (const Value& operand : content.items()) add_columns(operand, columns);
  }
}

bool uses_floating_column(const Value& stored, const arrow::Schema& schema) {
  std::vector<std::string> columns;
  add_columns(stored, columns);
  return std::ranges::any_of(columns, [&](const std::string& name) {
    const auto field = schema.GetFieldByName(name);
    return field != nullptr && arrow::is_floating(field->type()->id());
  });
}

// Comparisons with NaN are false, except not_equal. A condition without negation is then false too, or true for other
// reasons.
bool is_met_by_nan(const Value& stored, const arrow::Schema& schema) {
  const auto& [kind, content] = stored.dict().front();
  if (!content.is_list()) return false;
  if ((kind == "invert" || kind == "not_equal" || kind == "is_nan") && uses_floating_column(stored, schema))
    return true;
  return std::ranges::any_of(content.items(), [&](const Value& operand) { return is_met_by_nan(operand, schema); });
}

}  // namespace

// ---- The public class

Expression Expression::from_value(const Value& stored) {
  require_expression(stored);
  return {Stored{}, stored};
}

Expression Expression::call(const char* function, const Expression& a) {
  return {Stored{}, Value{{function, list(a.stored_)}}};
}

Expression Expression::call(const char* function, const Expression& a, const Expression& b) {
  return {Stored{}, Value{{function, list(a.stored_, b.stored_)}}};
}

Expression column(const std::string& name) { return {Expression::Stored{}, Value{{"column", name}}}; }
Expression operator==(const Expression& a, const Expression& b) { return Expression::call("equal", a, b); }
Expression operator!=(const Expression& a, const Expression& b) { return Expression::call("not_equal", a, b); }
Expression operator<(const Expression& a, const Expression& b) { return Expression::call("less", a, b); }
Expression operator<=(const Expression& a, const Expression& b) { return Expression::call("less_equal", a, b); }
Expression operator>(const Expression& a, const Expression& b) { return Expression::call("greater", a, b); }
Expression operator>=(const Expression& a, const Expression& b) { return Expression::call("greater_equal", a, b); }
Expression operator&&(const Expression& a, const Expression& b) { return Expression::call("and_kleene", a, b); }
Expression operator||(const Expression& a, const Expression& b) { return Expression::call("or_kleene", a, b); }
Expression operator!(const Expression& a) { return Expression::call("invert", a); }
Expression is_null(const Expression& a) { return Expression::call("is_null", a); }
Expression is_nan(const Expression& a) { return Expression::call("is_nan", a); }

// ---- Conversion to Arrow

std::vector<std::string> columns_of(const Expression& expression) {
  std::vector<std::string> columns;
  add_columns(expression.to_value(), columns);
  return columns;
}

cp::Expression bind_condition(const Expression& condition, const std::shared_ptr<arrow::Schema>& schema) {
  initialise_compute();
  for (const std::string& column : columns_of(condition)) {
    if (schema->GetFieldIndex(column) < 0)
      throw InvalidArgument(fmt::format("a filter needs the column \"{}\"; the columns are: {}", column,
                                        fmt::join(schema->field_names(), ", ")));
  }
  const std::string doing = "the filter " + to_json(condition.to_value()) + " does not fit the columns";
  const arrow::Result<cp::Expression> bound = to_arrow(condition.to_value(), *schema).Bind(*schema);
  if (!bound.ok()) throw InvalidArgument(doing + ": " + bound.status().message());
  if (bound->type()->id() != arrow::Type::BOOL)
    throw InvalidArgument(doing + ": it is of " + bound->type()->ToString() + ", not a condition");
  return *bound;
}

bool is_met_by_nan(const Expression& condition, const arrow::Schema& schema) {
  return is_met_by_nan(condition.to_value(), schema);
}

Block keep_matching(const Block& block, const cp::Expression& bound, arrow::MemoryPool* pool) {
  cp::ExecContext context(pool);
  context.set_use_threads(false);
  const auto evaluated = cp::ExecuteScalarExpression(bound, cp::ExecBatch(*block), &context);
  if (!evaluated.ok())
    throw InvalidArgument(
        fmt::format("the filter {} does not fit the rows: {}", bound.ToString(), evaluated.status().message()));
  const arrow::Datum& mask = *evaluated;
  if (mask.is_scalar()) {
    const auto& kept = mask.scalar_as<arrow::BooleanScalar>();
    return kept.is_valid && kept.value ? block : block->Slice(0, 0);
  }
  return keep_rows(block, mask.make_array(), pool);
}

}  // namespace cadre::data
