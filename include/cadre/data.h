/// \file
/// Datasets for training, validation and inference: all headers of cadre::data. docs/tutorials/datasets.md begins with
/// a program of thirty lines.
///
///     const data::Dataset trips = data::read_parquet("s3://bucket/trips").filter(data::column("fare") > 0);
///     const double tip = trips.map_batches(fn<add_tip_share>).mean("tip_share");
///     for (const data::Batch& batch : trips.iter_batches({.batch_size = 1024})) ...
///
/// cadre/data_torch.h has the functions for LibTorch: batches as tensors.
#pragma once

namespace cadre {
/// Datasets.
namespace data {}
}  // namespace cadre

#include "cadre/data/batch.h"
#include "cadre/data/dataset.h"
#include "cadre/data/expression.h"
#include "cadre/data/functions.h"
#include "cadre/data/grouped_data.h"
#include "cadre/data/image.h"
#include "cadre/data/image_changes.h"
#include "cadre/data/image_transforms.h"
#include "cadre/data/iterate.h"
#include "cadre/data/mix_up.h"
#include "cadre/data/read.h"
#include "cadre/data/run_dataset.h"
#include "cadre/error.h"
#include "cadre/init.h"
#include "cadre/object.h"
#include "cadre/resources.h"
#include "cadre/value.h"
