// Events of a core as rows of the store, and back: the kind is the name of the event's type, "worker_ended" for
// WorkerEnded, and the data are its members. The columns trial and attempt repeat members of these names for readers.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/json.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "store/tables.h"

namespace cadre::control {

// Returns "worker_ended" for "WorkerEnded".
std::string kind_of_type(std::string_view type_name);

template <class Event>
const std::string& event_kind() {
  static const std::string kind = kind_of_type(cadre::detail::type_name<Event>());
  return kind;
}

template <class Event>
store::EventRow to_event_row(const Event& event, double time) {
  store::EventRow row{.time = time, .kind = event_kind<Event>(), .data = base::to_json(cadre::to_stored(event).dict())};
  if constexpr (requires { event.trial; }) row.trial = event.trial;
  if constexpr (requires { event.attempt; }) row.attempt = event.attempt;
  return row;
}

// Returns the event that the row was made from. Events of the type Reported have a table of their own. Throws
// StorageError for a row that no version of Cadre wrote.
template <class Event, class Reported>
Event from_event_row(const store::EventRow& row) {
  const std::string source = "event " + std::to_string(row.sequence) + " of the store";
  const Value data = base::parse_json(row.data, source);
  Event event;
  const auto read = [&]<class One>(std::type_identity<One>) {
    if constexpr (std::same_as<One, Reported>) {
      return false;
    } else {
      if (row.kind != event_kind<One>()) return false;
      event = cadre::from_stored<One>(data, source);
      return true;
    }
  };
  const bool known = [&]<class... One>(std::type_identity<std::variant<One...>>) {
    return (read(std::type_identity<One>()) || ...);
  }(std::type_identity<Event>());
  if (!known)
    throw StorageError(source + " has the unknown kind \"" + row.kind + "\": the store is damaged or of a newer Cadre");
  return event;
}

}  // namespace cadre::control
