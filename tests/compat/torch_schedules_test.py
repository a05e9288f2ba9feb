"""Learning-rate schedules give the rates of Python's, bit for bit, and their states go from C++ to Python and back."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import warnings

import torch
from torch.optim import lr_scheduler

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "torch_schedules_tool"
STEPS = 24
METRICS = [1, 0.9, 0.95, 0.9, 0.91, 0.92, 0.93, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.4, float("nan"), 0.4, 0.4, 0.4, 0.4, 0.39, 0.3, 0.3, 0.3, 0.3]


def schedule(name, **arguments):
    return {"name": name, **arguments}


SIMPLE = [
    *(schedule("StepLR", step_size=size, gamma=gamma) for size in (1, 3, 7) for gamma in (0.1, 0.5, 1.3)),
    *(schedule("MultiStepLR", milestones=milestones, gamma=0.3) for milestones in ([], [0], [2, 5, 11], [5, 2, 5, 30])),
    *(schedule("ConstantLR", factor=factor, total_iters=total) for factor in (0.25, 1 / 3, 1.0) for total in (0, 1, 5)),
    *(schedule("LinearLR", start_factor=start, end_factor=end, total_iters=total)
      for start in (0.1, 1 / 3, 1.0) for end in (0.0, 0.7, 1.0) for total in (1, 5, 20)),
    *(schedule("ExponentialLR", gamma=gamma) for gamma in (0.9, 0.123, 1.0)),
    *(schedule("PolynomialLR", total_iters=total, power=power) for total in (1, 5, 20) for power in (0.5, 1.0, 2.5)),
    *(schedule("CosineAnnealingLR", T_max=period, eta_min=least) for period in (1, 4, 10, 30) for least in (0.0, 1e-3)),
    *(schedule("CosineAnnealingWarmRestarts", T_0=first, T_mult=factor, eta_min=least)
      for first in (1, 4, 5) for factor in (1, 2) for least in (0.0, 1e-3)),
    schedule("LambdaLR"),
]
ONE_CYCLE = [schedule("OneCycleLR", max_lr=[0.5], total_steps=total, pct_start=part, anneal_strategy=strategy, three_phase=three)
             for total in (24, 30, 100) for part in (0.2, 0.3, 0.45) for strategy in ("cos", "linear") for three in (False, True)]
PLATEAU = [schedule("ReduceLROnPlateau", mode=mode, factor=0.3, patience=patience, threshold=threshold, threshold_mode=how, cooldown=cooldown, min_lr=0.004)
           for mode in ("min", "max") for patience in (0, 1, 3) for threshold, how in ((1e-4, "rel"), (0.05, "abs")) for cooldown in (0, 2)]
COMPOSED = [
    schedule("ChainedScheduler", schedulers=[schedule("ConstantLR", factor=0.1, total_iters=2), schedule("ExponentialLR", gamma=0.9)]),
    schedule("ChainedScheduler", schedulers=[
        schedule("SequentialLR", schedulers=[schedule("LinearLR", total_iters=4), schedule("CosineAnnealingLR", T_max=8)], milestones=[5]),
        schedule("StepLR", step_size=3)]),
    *(schedule("SequentialLR", schedulers=[schedule("LinearLR", start_factor=0.2, total_iters=4), one], milestones=[6])
      for one in (*SIMPLE[::3], SIMPLE[-1], schedule("CosineAnnealingWarmRestarts", T_0=3, T_mult=2))),
    schedule("SequentialLR", schedulers=[schedule("ExponentialLR", gamma=0.7)], milestones=[]),
    schedule("SequentialLR", schedulers=[schedule("ConstantLR", total_iters=2), schedule("ExponentialLR", gamma=0.9), schedule("StepLR", step_size=2)],
             milestones=[0, 9]),
]


def cases(**more):
    for one in [*SIMPLE, *ONE_CYCLE, *PLATEAU, *COMPOSED]:
        metrics = {"metrics": METRICS} if one["name"] == "ReduceLROnPlateau" else {}
        yield {"optimizer": "SGD", "lrs": [0.1, 0.03], "schedule": one, "steps": STEPS, **metrics, **more}
    for one in [*ONE_CYCLE[::5], *SIMPLE[::9]]:
        yield {"optimizer": "Adam", "lrs": [0.01], "schedule": one, "steps": STEPS, **more}


def make_optimizer(case):
    if case["optimizer"] == "SGD":
        groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate} for rate in case["lrs"]]
        return torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    return torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=case["lrs"][0])


def make_scheduler(optimizer, one):
    arguments = {key: value for key, value in one.items() if key != "name"}
    if one["name"] == "LambdaLR":
        return lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0 / (epoch + 1))
    if one["name"] == "OneCycleLR":
        arguments["max_lr"] = arguments["max_lr"][0]
    if "schedulers" in one:
        parts = [make_scheduler(optimizer, part) for part in one["schedulers"]]
        if one["name"] == "ChainedScheduler":
            return lr_scheduler.ChainedScheduler(parts)
        return lr_scheduler.SequentialLR(optimizer, parts, one["milestones"])
    return getattr(lr_scheduler, one["name"])(optimizer, **arguments)


def present(optimizer):
    return [number for group in optimizer.param_groups
            for number in (group["lr"], group["momentum"] if "momentum" in group else group["betas"][0])]


def take_steps(case, optimizer, scheduler, first=0):
    results = [present(optimizer)]
    for i in range(first, first + case["steps"]):
        scheduler.step(*([case["metrics"][i]] if "metrics" in case else []))
        results.append(present(optimizer))
    return results


class TorchSchedulesTest(unittest.TestCase):
    def setUp(self):
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # no step of the optimizer is taken
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def tool(self, all_cases):
        (self.folder / "cases").write_text(json.dumps(all_cases), encoding="utf-8")
        subprocess.run([TOOL, self.folder / "cases", self.folder / "results"], check=True)
        return json.loads((self.folder / "results").read_text())

    def python(self, case):
        optimizer = make_optimizer(case)
        return take_steps(case, optimizer, make_scheduler(optimizer, case["schedule"]))

    def test_rates_are_pythons(self):
        all_cases = list(cases())
        self.assertGreater(len(all_cases), 150)
        for case, found in zip(all_cases, self.tool(all_cases)):
            self.assertEqual(found, self.python(case), case)

    def test_a_saved_state_goes_on_as_if_it_had_not_ended(self):
        first = [case | {"steps": 9, "save": str(self.folder / f"{i}.pt")} for i, case in enumerate(cases())]
        self.tool(first)
        second = [case | {"steps": 10, "load": case["save"], "save": "", "metrics": METRICS[9:]} for case in first]
        for case, found in zip(cases(), self.tool(second)):
            self.assertEqual(found, self.python(case)[9:20], case)

    def test_python_goes_on_from_it(self):
        first = [case | {"steps": 9, "save": str(self.folder / f"{i}.pt")} for i, case in enumerate(cases())]
        self.tool(first)
        for case, whole in zip(first, cases()):
            optimizer = make_optimizer(case)
            scheduler = make_scheduler(optimizer, case["schedule"])
            state = torch.load(case["save"], weights_only=True)
            optimizer.load_state_dict(state["optimizer"])
            scheduler.load_state_dict(state["scheduler"])
            self.assertEqual(take_steps(case | {"steps": 10}, optimizer, scheduler, 9), self.python(whole)[9:20], case)

    def test_it_goes_on_from_pythons(self):
        second = []
        for i, case in enumerate(cases()):
            optimizer = make_optimizer(case)
            scheduler = make_scheduler(optimizer, case["schedule"])
            take_steps(case | {"steps": 9}, optimizer, scheduler)
            file = self.folder / f"{i}.pt"
            torch.save({"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, file)
            second.append(case | {"steps": 10, "load": str(file), "metrics": METRICS[9:]})
        for case, found in zip(cases(), self.tool(second)):
            self.assertEqual(found, self.python(case)[9:20], case)

    def test_what_cannot_be_is_refused(self):
        def fault(one, **more):
            [result] = self.tool([{"optimizer": "SGD", "lrs": [0.1, 0.03], "schedule": one, "steps": 1, **more}])
            return result["error"]

        self.assertIn("step_size: it is 0; it must be at least 1", fault(schedule("StepLR", step_size=0)))
        self.assertIn("max_lr: it has 3 rates", fault(schedule("OneCycleLR", max_lr=[1, 2, 3], total_steps=4)))
        self.assertIn("schedulers[1] T_max: it is 0",
                      fault(schedule("ChainedScheduler", schedulers=[schedule("ExponentialLR", gamma=1), schedule("CosineAnnealingLR", T_max=0)])))
        self.assertIn("step() was called 5 times; total_steps is 4", fault(schedule("OneCycleLR", max_lr=[1], total_steps=4), steps=6))
        file = self.folder / "step.pt"
        self.tool([{"optimizer": "SGD", "lrs": [0.1, 0.03], "schedule": schedule("StepLR", step_size=2), "steps": 1, "save": str(file)}])
        other = fault(schedule("ExponentialLR", gamma=0.9), load=str(file))
        self.assertIn("this is no state of an ExponentialLR", other)
        self.assertIn("step_size: nothing here has that name", other)
        self.assertIn("groups", fault(schedule("StepLR", step_size=2), lrs=[0.1], load=str(file)))


if __name__ == "__main__":
    unittest.main()
