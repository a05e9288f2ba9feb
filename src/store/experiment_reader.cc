#include "store/experiment_reader.h"

#include "base/machine.h"
#include "cadre/error.h"
#include "store/damage.h"
#include "store/experiment_lock.h"
#include "store/integrity.h"
#include "store/wal_scan.h"

namespace cadre::store {

ExperimentReader::ExperimentReader(const std::filesystem::path& directory, Check check)
    : controller_(ExperimentLock::holder(directory)),
      store_(open_to_read(directory, controller_.has_value())),
      database_(store_.database.get()) {
  if (check == Check::whole) check_whole(directory);
  database_->execute("BEGIN");  // for one consistent state of a store that is being written
  if (check == Check::whole) check_structure(*database_);
  check_format(*database_);
  result_.emplace(*database_, "WHERE sequence = ?");
}

// Does nothing while a controller runs: a log that is being written cannot be read past SQLite.
void ExperimentReader::check_whole(const std::filesystem::path& directory) const {
  if (controller_) return;
  const WalScan log = scan_wal(database_->log_path());
  if (log.damage && !ExperimentLock::holder(directory)) {
    // After a reboot the damage is due to a loss of power: SQLite reads what was committed before it.
    check_format(*database_);
    if (read_meta(*database_).at("boot") == base::boot_id())
      throw_damaged(database_->log_path(), log.damage, "committed transactions follow what cannot be read");
  }
  check_length(*database_, log);
}

std::string ExperimentReader::metrics(std::int64_t sequence) {
  std::optional<ResultRow> row = result_->bind(1, sequence).first();
  if (!row) throw_missing(*database_, "result", sequence);
  return std::move(row->metrics);
}

}  // namespace cadre::store
