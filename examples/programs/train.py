"""A PyTorch script as a trainable, without any package of Cadre's: a network learns in which of eight sectors of the
plane a point is.

    cadre tune tune.toml -- python3 train.py --lr {lr} --momentum {momentum}
"""

import argparse
import json
import os

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--epochs", type=int, default=20)
options = parser.parse_args()

# The descriptor through which Cadre gets reports and gives answers; None if the script is run by hand.
cadre = os.fdopen(int(os.environ["CADRE_REPORT_FD"]), "r+b", buffering=0) if "CADRE_REPORT_FD" in os.environ else None


def report(metrics, save):
    """Reports metrics. Returns False if the script is to end."""
    if cadre is None:
        print(metrics)
        return True
    cadre.write(b"offer " + json.dumps(metrics).encode() + b"\n")
    answer = cadre.readline()
    if answer == b"checkpoint\n":
        save(os.environ["CADRE_CHECKPOINT_OUT"])
        cadre.write(b"saved\n")
        answer = cadre.readline()
    return answer == b"continue\n"


torch.manual_seed(0)
points = torch.randn(2000, 2)
sectors = ((torch.atan2(points[:, 1], points[:, 0]) / torch.pi + 1) * 4).long().clamp(0, 7)

torch.manual_seed(int(os.environ.get("CADRE_SEED", 0)) % 2**63)
net = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 8))
optimizer = torch.optim.SGD(net.parameters(), options.lr, momentum=options.momentum)
first_epoch = 0

if "CADRE_CHECKPOINT_IN" in os.environ:
    state = torch.load(os.path.join(os.environ["CADRE_CHECKPOINT_IN"], "state.pt"))
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    first_epoch = state["epoch"]
    for group in optimizer.param_groups:  # another trial's checkpoint, with this trial's hyper-parameters
        group["lr"], group["momentum"] = options.lr, options.momentum

for epoch in range(first_epoch, options.epochs):
    for batch, labels in zip(points.split(100), sectors.split(100)):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(batch), labels).backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (net(points).argmax(1) == sectors).float().mean().item()

    def save(directory):
        state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}
        torch.save(state, os.path.join(directory, "state.pt"))

    if not report({"accuracy": accuracy}, save):
        break
