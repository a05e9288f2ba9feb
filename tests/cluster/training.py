"""A program that trains one model in four workers, for training_test.py:

    training.py <storage path> <steps> <CPUs of a worker>

Prints the parameters, to the last bit.
"""

import socket
import sys

import cadre
import cadre.train
import cadre.train.torch


def learn(config):
    import torch

    context = cadre.train.get_context()
    torch.manual_seed(5)
    model = cadre.train.torch.prepare_model(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    print(f"on {socket.gethostname()} local rank {context.get_local_rank()} of {context.get_local_world_size()}, "
          f"node {context.get_node_rank()}", flush=True)
    for step in range(1, config["steps"] + 1):
        batch = torch.randn(16, 8, generator=torch.Generator().manual_seed(100 * step + context.get_world_rank()))
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(batch), batch.sum(1, keepdim=True)).backward()
        optimizer.step()
        cadre.train.report({"step": step})
    parameters = [value.hex() for parameter in model.parameters() for value in parameter.detach().flatten().tolist()]
    cadre.train.report({"step": config["steps"], "bits": " ".join(parameters)})


def main():
    cadre.init()
    result = cadre.train.torch.TorchTrainer(
        learn, train_loop_config={"steps": int(sys.argv[2])}, scaling_config=cadre.train.ScalingConfig(
            num_workers=4, resources_per_worker={"CPU": float(sys.argv[3])}),
        run_config=cadre.train.RunConfig(name="training", storage_path=sys.argv[1], verbose=0)).fit()
    if result.error:
        sys.exit(str(result.error))
    print(f"{result.metrics['step']}: {result.metrics['bits']}")


if __name__ == "__main__":
    main()
