"""Population Based Training of a DCGAN, with pictures of real and of made images."""

import os
import sys

import numpy as np
import torch

import cadre as ray
from cadre import tune
from cadre.tune.examples.pbt_dcgan_mnist.common import MODEL_PATH, Net, demo_gan, get_data_loader, plot_images
from cadre.tune.examples.pbt_dcgan_mnist.pbt_dcgan_mnist_func import dcgan_train, download_mnist_cnn
from cadre.tune.schedulers import PopulationBasedTraining


def main(storage_path):
    if ray.is_initialized():
        ray.shutdown()
    ray.init(num_cpus=2)
    if not os.path.exists(MODEL_PATH):  # so that none is trained here, which takes a minute
        os.makedirs(os.path.dirname(MODEL_PATH), exist_ok=True)
        torch.save(Net().state_dict(), MODEL_PATH)
    plot_images(get_data_loader())
    mnist_cnn = Net()
    mnist_cnn.load_state_dict(torch.load(download_mnist_cnn()))
    mnist_cnn.eval()
    mnist_model_ref = ray.put(mnist_cnn)
    scheduler = PopulationBasedTraining(
        time_attr="training_iteration", perturbation_interval=2, synch=True,
        hyperparam_mutations={"netG_lr": lambda: np.random.uniform(1e-2, 1e-5),
                              "netD_lr": lambda: np.random.uniform(1e-2, 1e-5)})
    tuner = tune.Tuner(
        dcgan_train,
        run_config=tune.RunConfig(name="pbt_dcgan_mnist_tutorial", storage_path=storage_path, stop={"training_iteration": 4}),
        tune_config=tune.TuneConfig(metric="is_score", mode="max", num_samples=4, scheduler=scheduler),
        param_space={"netG_lr": tune.choice([0.0001, 0.0002, 0.0005]), "netD_lr": tune.choice([0.0001, 0.0002, 0.0005]),
                     "mnist_model_ref": mnist_model_ref, "checkpoint_interval": 2})
    results_grid = tuner.fit()
    demo_gan([result.checkpoint.path for result in results_grid])
    print("SCORES", all(result.metrics["is_score"] >= 1 for result in results_grid), len(results_grid.errors))
    frames = [result.metrics_dataframe for result in results_grid]
    print("LOSSES", all({"lossg", "lossd", "is_score"} <= set(frame.columns) for frame in frames))


if __name__ == "__main__":
    main(sys.argv[1])
