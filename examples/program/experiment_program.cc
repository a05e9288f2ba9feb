#include "program/experiment_program.h"

#include "cadre/error.h"

namespace examples {

void add_flags(CommandLine& command_line, ExperimentFlags& flags) {
  command_line.option("--num-samples", &flags.num_samples, "trials in the population");
  command_line.option("--max-iterations", &flags.max_iterations, "a trial stops here");
  command_line.option("--seed", &flags.seed, "of all random choices");
  command_line.option("--data-dir", &flags.data_dir, "folder with the four IDX files of MNIST, plain or .gz");
  command_line.option("--storage-path", &flags.storage_path,
                      "folder for experiments, also a URI as s3://bucket/folder");
  command_line.option("--name", &flags.name, "of the experiment's folder");
  command_line.flag("--restore", &flags.restore,
                    "go on with the interrupted experiment of that name, with the flags it was begun with");
  command_line.flag("--smoke-test", &flags.smoke_test,
                    "only see that everything works: 2 trials of 5 iterations, whatever other flags say");
  command_line.then([&flags] {
    if (!flags.smoke_test) return;
    flags.num_samples = 2;
    flags.max_iterations = 5;
  });
}

void add_flags(CommandLine& command_line, TrainingFlags& flags) {
  command_line.option("--num-workers", &flags.num_workers, "processes that train together");
  command_line.option("--gpus-per-worker", &flags.gpus_per_worker, "0.5: two workers share one; 0: train on CPUs");
  command_line.option("--epochs", &flags.epochs, "times that all images are seen");
  command_line.choice("--model", &flags.model, {"convnet", "resnet18"}, "the network");
  command_line.option("--max-images", &flags.max_images, "train and test with the first images only; 0: with all");
  command_line.option("--seed", &flags.seed, "of all random choices");
  command_line.option("--data-dir", &flags.data_dir, "folder with the four IDX files of Fashion-MNIST, plain or .gz");
  command_line.option("--storage-path", &flags.storage_path, "folder for runs");
  command_line.option("--name", &flags.name, "of the run's folder");
  command_line.flag("--restore", &flags.restore,
                    "go on with the interrupted run of that name, with the flags it was begun with");
  command_line.flag(
      "--smoke-test", &flags.smoke_test,
      "only see that everything works: the small network, 2 epochs of 1,024 images, whatever other flags say");
  command_line.then([&flags] {
    if (!flags.smoke_test) return;
    flags.model = "convnet";
    flags.epochs = 2;
    flags.max_images = 1024;
  });
}

cadre::train::ScalingConfig TrainingFlags::scaling_config() const {
  cadre::train::ScalingConfig scaling{.num_workers = num_workers, .use_gpu = gpus_per_worker != 0};
  if (scaling.use_gpu) scaling.resources_per_worker = {.cpus = 1, .gpus = gpus_per_worker};
  return scaling;
}

int run_program(const std::string& program, const ExperimentFlags& flags, const std::function<int()>& run) {
  try {
    return run();
  } catch (const cadre::Interrupted& interrupted) {
    std::string command = program + " --storage-path " + flags.storage_path + " --name " + flags.name + " --restore";
    if (flags.data_dir != ExperimentFlags{}.data_dir) command += " --data-dir " + flags.data_dir;
    throw cadre::Interrupted(std::string(interrupted.what()) + "\nHere that is: " + command);
  }
}

}  // namespace examples
