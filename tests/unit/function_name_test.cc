#include "cadre/detail/function_name.h"

#include <gmock/gmock.h>

#include "cadre/error.h"
#include "cadre/value.h"
#include "support/message_of.h"

// A function's symbol depends on its linkage.
void function_name_test_global(const cadre::Config&) {}
template <class Number>
void function_name_test_instance(const cadre::Config&) {}

namespace cadre::detail {
namespace {

using test_support::message_of;

void plain(const Config&) {}
template <class Number>
void instance(const Config&) {}
template <class Number>
struct Holder {
  static void method(const Config&) {}
};

}  // namespace

TEST(FunctionName, IsRefusedForAnInstanceOfATemplateWhichClangNamesLikeTheTemplate) {
  const std::string message = message_of<InvalidArgument>([] { refuse_template(typeid(Named<&instance<double>>)); });
  EXPECT_THAT(message, testing::HasSubstr("instance<double>"));
  EXPECT_THAT(message, testing::HasSubstr("write a plain function"));
  EXPECT_THROW(refuse_template(typeid(Named<&function_name_test_instance<Config>>)), InvalidArgument);
}

TEST(FunctionName, IsGoodForPlainFunctionsAndStaticMethods) {
  EXPECT_NO_THROW(refuse_template(typeid(Named<&plain>)));
  EXPECT_NO_THROW(refuse_template(typeid(Named<&function_name_test_global>)));
  EXPECT_NO_THROW(refuse_template(typeid(Named<&Holder<int>::method>)));
}

}  // namespace cadre::detail
