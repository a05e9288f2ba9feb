// The pages and streams of the dashboard, by their addresses.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dashboard/board.h"
#include "dashboard/control_queue.h"
#include "http/message.h"
#include "report/page_file.h"

namespace cadre::dashboard {

// Returns the headers of every response: pages load scripts, styles and streams of this server, and nothing else; no
// other page may embed them.
http::Headers common_headers();

// Below /<token>/ are the list of experiments ("/"), a page for each or several ("/experiment?id=...&id=..."), the
// streams of both ("/events", "/events?id=...&id=..."), and the scripts and style sheets. A POST to "/control?id=..."
// makes a request to an experiment, if that is allowed; docs/formats.md, "The dashboard", describes it. All else is
// refused: nothing else here changes anything.
class Site {
 public:
  // `controls`: nullptr if pages may only look.
  Site(std::string token, Board& board, ControlQueue* controls,
       std::span<const report::PageFile> files = report::page_files());

  http::Response handle(const http::Request& request);

 private:
  http::Response control(const http::Request& request, std::string_view query);
  // Returns false if there is no experiment with any of the ids, as far as is known.
  bool may_be_shown(const std::vector<std::string>& ids) const;
  http::Response page(std::string_view path, std::string_view query);
  http::Response events(std::string_view query);

  const std::string token_;
  Board& board_;
  ControlQueue* const controls_;
  const std::span<const report::PageFile> files_;
};

}  // namespace cadre::dashboard
