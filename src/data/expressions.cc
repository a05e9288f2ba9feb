#include "data/expressions.h"

#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "data/arrow_status.h"
#include "data/compute.h"

namespace cadre::data {
namespace {

namespace cp = arrow::compute;

// What conditions call, by Arrow's names, and how many operands each has.
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

cp::Expression to_arrow(const Value& stored) {
  const auto& [kind, content] = stored.dict().front();
  if (kind == "column") return cp::field_ref(content.get<std::string>());
  if (kind == "value") {
    if (content.is_bool()) return cp::literal(content.get<bool>());
    if (content.is_integer()) return cp::literal(content.get<std::int64_t>());
    if (content.is_double()) return cp::literal(content.get<double>());
    return cp::literal(content.get<std::string>());
  }
  std::vector<cp::Expression> operands;
  for (const Value& operand : content.items()) operands.push_back(to_arrow(operand));
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

// ---- In Arrow's terms

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
  const arrow::Result<cp::Expression> bound = to_arrow(condition.to_value()).Bind(*schema);
  if (!bound.ok()) throw InvalidArgument(doing + ": " + bound.status().message());
  if (bound->type()->id() != arrow::Type::BOOL)
    throw InvalidArgument(doing + ": it is of " + bound->type()->ToString() + ", not a condition");
  return *bound;
}

Block keep_matching(const Block& block, const cp::Expression& bound, arrow::MemoryPool* pool) {
  cp::ExecContext context(pool);
  context.set_use_threads(false);
  const arrow::Datum mask =
      checked(cp::ExecuteScalarExpression(bound, cp::ExecBatch(*block), &context), "cannot evaluate a filter");
  if (mask.is_scalar()) {
    const auto& kept = mask.scalar_as<arrow::BooleanScalar>();
    return kept.is_valid && kept.value ? block : block->Slice(0, 0);
  }
  return keep_rows(block, mask.make_array(), pool);
}

}  // namespace cadre::data
