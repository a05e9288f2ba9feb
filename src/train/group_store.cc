#include "train/group_store.h"

#include <utility>

#include "cadre/error.h"

namespace cadre::train {

using Operation = channel::StoreRequest::Operation;

channel::StoreReply GroupStore::call(channel::StoreRequest request) {
  channel::StoreReply reply = controller_.call(std::move(request));
  if (!reply.error.empty()) throw Error("the group's store: " + reply.error);
  return reply;
}

void GroupStore::set(const std::string& key, const std::string& value) {
  call({.operation = Operation::set, .keys = {key}, .value = value});
}

std::string GroupStore::get(const std::string& key, Milliseconds timeout) {
  return call({.operation = Operation::get, .keys = {key}, .timeout_ms = timeout.count()}).value;
}

void GroupStore::wait(std::span<const std::string> keys, Milliseconds timeout) {
  call({.operation = Operation::wait, .keys = {keys.begin(), keys.end()}, .timeout_ms = timeout.count()});
}

bool GroupStore::contains(std::span<const std::string> keys) {
  return call({.operation = Operation::contains, .keys = {keys.begin(), keys.end()}}).number != 0;
}

std::int64_t GroupStore::add(const std::string& key, std::int64_t amount) {
  return call({.operation = Operation::add, .keys = {key}, .amount = amount}).number;
}

std::string GroupStore::compare_and_set(const std::string& key, const std::string& expected, const std::string& value) {
  return call({.operation = Operation::compare_and_set, .keys = {key}, .value = value, .expected = expected}).value;
}

bool GroupStore::erase(const std::string& key) {
  return call({.operation = Operation::erase, .keys = {key}}).number != 0;
}

std::int64_t GroupStore::size() { return call({.operation = Operation::size}).number; }

}  // namespace cadre::train
