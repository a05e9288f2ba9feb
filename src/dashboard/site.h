// The pages and streams of the dashboard, by their addresses.
#pragma once

#include <span>
#include <string>

#include "dashboard/board.h"
#include "http/message.h"
#include "report/page_file.h"

namespace cadre::dashboard {

// Below /<token>/ are the list of experiments ("/"), a page for each ("/experiment?id=..."), the streams of both
// ("/events", "/events?id=..."), and the scripts and style sheets. All else is refused: nothing here changes anything.
class Site {
 public:
  Site(std::string token, Board& board, std::span<const report::PageFile> files = report::page_files());

  http::Response handle(const http::Request& request);

 private:
  http::Response page(std::string_view path, std::string_view query);
  http::Response events(std::string_view query);

  const std::string token_;
  Board& board_;
  const std::span<const report::PageFile> files_;
};

}  // namespace cadre::dashboard
