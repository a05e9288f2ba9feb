#include "train/callback_list.h"

namespace cadre::train {

void Callback::on_start(const RunContext&) {}
void Callback::after_report(const RunContext&, const Metrics&, const std::optional<Checkpoint>&) {}
void Callback::after_reports(const RunContext& run, const std::vector<Metrics>& metrics,
                             const std::optional<Checkpoint>& checkpoint) {
  after_report(run, metrics.front(), checkpoint);
}
void Callback::on_checkpoint(const RunContext&, const Checkpoint&) {}
void Callback::after_validation(const RunContext&, const ReportedCheckpoint&) {}
void Callback::after_exception(const RunContext&, const std::map<std::int64_t, std::string>&) {}
void Callback::on_end(const RunContext&) {}
std::string Callback::name() const { return "Callback"; }

void CallbackList::on_start(const RunContext& run) {
  for_each("on_start", [&](Callback& callback) { callback.on_start(run); });
}

void CallbackList::after_reports(const RunContext& run, const std::vector<Metrics>& metrics,
                                 const std::optional<Checkpoint>& checkpoint) {
  for_each("after_report", [&](Callback& callback) { callback.after_reports(run, metrics, checkpoint); });
}

void CallbackList::on_checkpoint(const RunContext& run, const Checkpoint& checkpoint) {
  for_each("on_checkpoint", [&](Callback& callback) { callback.on_checkpoint(run, checkpoint); });
}

void CallbackList::after_validation(const RunContext& run, const ReportedCheckpoint& checkpoint) {
  for_each("after_validation", [&](Callback& callback) { callback.after_validation(run, checkpoint); });
}

void CallbackList::after_exception(const RunContext& run, const std::map<std::int64_t, std::string>& failures) {
  for_each("after_exception", [&](Callback& callback) { callback.after_exception(run, failures); });
}

void CallbackList::on_end(const RunContext& run) {
  for_each("on_end", [&](Callback& callback) { callback.on_end(run); });
}

}  // namespace cadre::train
