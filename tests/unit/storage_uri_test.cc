#include "storage/uri.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cadre/error.h"
#include "support/message_of.h"

namespace cadre::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string refusal(const std::string& text) {
  return test_support::message_of<InvalidArgument>([&] { parse_uri(text); });
}

TEST(Uri, TakesItsPartsApartAndTogether) {
  const Uri uri = parse_uri("S3://bucket/a/folder/?region=eu-central-1&scheme=http");
  EXPECT_EQ(uri, (Uri{"s3", "bucket/a/folder", "region=eu-central-1&scheme=http"}));
  EXPECT_EQ(to_string(uri), "s3://bucket/a/folder?region=eu-central-1&scheme=http");
  EXPECT_EQ(shown(uri), "s3://bucket/a/folder");
  EXPECT_EQ(to_string(uri / "name"), "s3://bucket/a/folder/name?region=eu-central-1&scheme=http");
  EXPECT_EQ(name_of(uri / "name"), "name");
  EXPECT_EQ(parent_of(uri / "name"), uri);
}

TEST(Uri, OfTheSamePlaceIsTheSameWithEachNameOfItsScheme) {
  EXPECT_EQ(parse_uri("gcs://bucket/folder?x=1"), parse_uri("gs://bucket/folder?x=1"));
  EXPECT_EQ(parse_uri("ABFSS://container@account/folder"), parse_uri("abfs://container@account/folder"));
  EXPECT_EQ(to_string(parse_uri("gcs://bucket/folder")), "gs://bucket/folder");
}

TEST(Uri, OfFilesHasAWholePath) {
  EXPECT_EQ(parse_uri("file:///home/me/x").location, "/home/me/x");
  EXPECT_EQ(shown(parse_uri("file:///")), "file:///");
  EXPECT_EQ(shown(parse_uri("file:///") / "x"), "file:///x");
  EXPECT_THAT(refusal("file://home/me"), HasSubstr("three slashes"));
}

TEST(Uri, EncodesWhatWouldMeanSomethingElse) {
  const Uri uri = parse_uri("s3://bucket/a%20b%3F") / "lr=0.1,100%#";
  EXPECT_EQ(uri.location, "bucket/a b?/lr=0.1,100%#");
  EXPECT_EQ(to_string(uri), "s3://bucket/a%20b%3F/lr=0.1,100%25%23");
  EXPECT_EQ(parse_uri(to_string(uri)), uri);
  EXPECT_EQ(parse_uri("s3://bucket/50%").location, "bucket/50%") << "no code";
}

TEST(Uri, IsNoPath) {
  for (const char* path : {"results", "/abs/olute", "~/x", "s3:/bucket", "://x", "3s://x", "a b://x", ""})
    EXPECT_FALSE(is_uri(path)) << path;
  EXPECT_TRUE(is_uri("gs://bucket"));
  EXPECT_THAT(refusal("results"), HasSubstr("no URI"));
  EXPECT_THAT(refusal("s3:///folder"), HasSubstr("no bucket"));
}

TEST(Uri, WithASecretIsRefusedWithoutShowingIt) {
  for (const char* text : {"s3://key:hunter2@bucket/x", "s3://bucket/x?secret_key=hunter2", "gs://me:hunter2@bucket",
                           "abfs://container@account/x?client_SECRET=hunter2", "abfs://:hunter2@account/x"})
    EXPECT_THAT(refusal(text), AllOf(HasSubstr("secret"), Not(HasSubstr("hunter2")))) << text;
  EXPECT_EQ(parse_uri("abfs://container@account.dfs.core.windows.net/x").location,
            "container@account.dfs.core.windows.net/x");
}

}  // namespace
}  // namespace cadre::storage
