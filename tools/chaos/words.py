"""Mutated command lines of every command: each ends in time, with an exit code of ours and, if it fails, a line.

No file that jostle did not write may change, unless ``--force`` is among the words.
"""

import hashlib
import random
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from chaos.forks import Outcome, call
from chaos.mutations import mutate
from chaos.record import Count
from jostle.cli import UNEXPECTED

_SECONDS, _SERVED = 300.0, 20.0
_OWN = (
    "mine.py",
    "mine.txt",
    "net.py",
    "inputs.npy",
    "labelled.npz",
    "texts.csv",
    "numbers.csv",
    "table.txt",
    "photos/0.png",
)
_NET = """
import torch
from torch import nn

def make(width=4):
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).float()

def bits():
    torch.manual_seed(1)
    return nn.Linear(4, 1).float()

def data():
    return torch.zeros(5, 1, 4, 4)
"""
_SUBJECT = "--model py:net.py:make --data inputs.npy --tokens patches:2 --quiet"
_FEW = "--max-passes 300"
LINES = (
    f"measure {_SUBJECT} --perturbation gaussian-noise:std=1 {_FEW} -o r.json --report r.html",
    f"measure {_SUBJECT} --draws 1 --response margin --level 0.9 --seed 3 --json",
    "measure --model a=py:net.py:make:width=8 --data labelled.npz --tokens rows --half-width 0.2 --quiet --limit 5",
    "measure --model zoo:mlp:image_size=4,channels=1,classes=3,hidden=4/2 --data py:net.py:data --tokens whole --quiet "
    "--draws 1",
    "measure --model sample:mlp --data drawn-digits --split test --tokens patches:7 --limit 10 --draws 1 --quiet",
    f"compare {_SUBJECT} --model b=py:net.py:make --draws 1 -o c.json --report c.html --examples 1 --example-draws 1",
    f"compare {_SUBJECT} --model b=py:net.py:make --until-decided --at-least 0.2 {_FEW}",
    f"sweep {_SUBJECT} --stds 0.5 1 --draws 1 --plot s.svg -o s.json",
    "stability --model py:net.py:make --data inputs.npy --rho 0.5 0.9 --draws 1 -o n.json --quiet",
    "stability --model py:net.py:make --data inputs.npy --rho 0.5 --response correlation --centred --draws 2 --quiet",
    "certify --model py:net.py:make --data inputs.npy --std 1 --draws 50 --limit 2 --quiet -o e.json",
    "certify --model py:net.py:make --data labelled.npz --std 0.5 --draws 50 --selection 5 --alpha 0.01 --csv e.csv "
    "--quiet",
    "measure --model py:net.py:bits --data csv:numbers.csv --draws 1 --quiet --csv q.csv",
    "worst-case --model py:net.py:bits --data csv:numbers.csv --radius 1 --draws 2 --starts 1 --steps 2 --quiet",
    f"worst-case {_SUBJECT} --radius 0.3/1 --limit 2 --draws 2 --starts 1 --steps 2 -o w.json --picture w.png",
    "boolean majority --n 5 --figure f.svg --rho 0.5",
    "boolean table.txt --json",
    "boolean --model py:net.py:bits --n 4",
    "corrupt --data drawn-digits --corruption fog,noise --severity 1/3 --out grid.png",
    "corrupt --data inputs.npy --corruption contrast --severity 2 --out a.npz --value-range -4/4 --limit 3",
    "corrupt --data drawn-digits --model sample:mlp --corruption fog --severity 1 --limit 5 --json",
    "corrupt --data images:photos --corruption contrast --severity 2 --out b.npz",
    "run 2403.06925/proposition-3.1 --scale smoke --out runs --quiet --seeds 1",
    "run 2403.06925/table-1 --seeds 1 --out runs --quiet --json",
    "report runs -o report.html",
    "list perturbations --json",
    "list studies",
    "data status",
    "try --help",
    "play --help",
    "demo --help",
    "completion bash",
    "help measure",
    "--version",
    'boolean "x0 and not (x1 xor x2)" --json',
)
_TEXTS = "--data csv:texts.csv --quiet --limit 2"
TEXT_LINES = (
    f"measure --model hf:classifier {_TEXTS} {_FEW} --report t.html --examples 1 --example-draws 1 --json",
    f"measure --model hf:classifier {_TEXTS} --tokens words --perturbation uniform-token --draws 1 --csv t.csv",
    f"measure --model hf:language {_TEXTS} --tokens words --response kl --draws 1 --log-samples t.jsonl",
    "measure --model hf:language --prompt 'a film' --prompt 'no plot' --answer yes --answer no --tokens words --quiet",
    f"measure --model hf:classifier {_TEXTS} --cluster doc --tokens words --draws 1 --target population",
    f"stability --model hf:classifier {_TEXTS} --tokens words --rho 0.5 --vocabulary 8 --draws 1 --plot n.svg",
    f"certify --model hf:classifier {_TEXTS} --std 0.1 --draws 50",
    f"worst-case --model hf:classifier {_TEXTS} --radius 1 --draws 2 --starts 1 --steps 1 --report w.html",
    f"influence --model hf:language {_TEXTS} --response kl {_FEW} -o i.json --report i.html",
    "influence --model hf:language --prompt film --quiet --json",
    f"change --model hf:classifier {_TEXTS} --change typo --words 1 -o h.json --report h.html",
    f"depth --model hf:language {_TEXTS} --site mlp --response kl --plot d.svg {_FEW}",
    "depth --model py:net.py:make --data inputs.npy --site 1 --draws 1 --quiet",
)

COMMANDS = frozenset(line.split()[0] for line in (*LINES, *TEXT_LINES))


def make_folder(folder: Path) -> None:
    """A folder with files of a user, which the commands above read."""
    (folder / "photos").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    images = rng.standard_normal((12, 1, 4, 4)).astype(np.float32)
    np.save(folder / "inputs.npy", images)
    np.savez(folder / "labelled.npz", x=images, y=np.arange(12) % 3)
    (folder / "net.py").write_text(_NET)
    (folder / "mine.py").write_text("x = 1\n")
    (folder / "mine.txt").write_text("do not touch\n")
    (folder / "texts.csv").write_text("text,label,doc\na film,1,x\nno film,0,y\n")
    (folder / "numbers.csv").write_text("a,b,c,d\n1,2,0,1\n0,1,1,2\n")
    (folder / "table.txt").write_text("0110\n")
    from PIL import Image

    Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(folder / "photos" / "0.png")


def add_text_models(folder: Path) -> None:
    """A classifier of texts and a language model, small and random, as transformers saves them."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

    words = {word: number for number, word in enumerate(("[PAD]", "[UNK]", "a", "film", "no", "yes", "the", "plot"))}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]"])
    wide = {"vocab_size": len(words), "pad_token_id": 0}
    bert = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    gpt = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 16, "bos_token_id": 1, "eos_token_id": 1}
    torch.manual_seed(0)  # other folders have the same models
    for name, made in (
        ("classifier", AutoModelForSequenceClassification.from_config(AutoConfig.for_model("bert", **bert, **wide))),
        ("language", AutoModelForCausalLM.from_config(AutoConfig.for_model("gpt2", **gpt, **wide))),
    ):
        made.float().save_pretrained(folder / name)
        tokenizer.save(str(folder / name / "tokenizer.json"))
        (folder / name / "tokenizer_config.json").write_text(
            '{"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"}'
        )


def run(work: Path, number: int, seed: int, keep: Callable[[Count], None], _: Mapping[str, int]) -> None:
    """Run so many mutated command lines; arguments as of ``kills.run``."""
    rng, count, folder = random.Random(seed), Count(), work / "home"
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder)
    add_text_models(folder)
    lines = [shlex.split(line) for line in (*LINES, *TEXT_LINES)]
    others = sorted({word for line in lines for word in line})
    for line in lines:
        _judge(line, call(line, folder, _SECONDS), count, must_work=True)
    for done in range(1, number + 1):
        words = mutate(rng.choice(lines), rng, others)
        if words[:1] == ["demo"] and "--quick" not in words:
            words.append("--quick")  # the whole demo takes minutes
        attack(words, folder, count)
        if done % 50 == 0:
            keep(count)
    keep(count)


def attack(words: list[str], folder: Path, count: Count) -> Outcome:
    """Run one command line, and look at what it left behind."""
    before = _own(folder)
    # A bench that starts serves until it is stopped, which is no hang.
    is_served = words[:1] == ["play"]
    ended = call(words, folder, _SERVED if is_served else _SECONDS, {"HOME": str(folder)})
    if is_served and ended.is_late and "jostle plays at" in ended.out:
        ended = Outcome(0, ended.out, ended.err, ended.seconds)
    count.tried["command lines"] += 1
    count.where[words[0] if words and words[0] in COMMANDS else "none of them"] += 1
    _judge(words, ended, count)
    if _own(folder) != before:
        if "--force" not in words:
            count.fault("a file of the user's was changed", str(words))
        make_folder(folder)
    return ended


def _judge(words: list[str], ended: Outcome, count: Count, *, must_work: bool = False) -> None:
    for fault in ended.faults:
        if fault == "traceback" and "--debug" in words and f"jostle: {UNEXPECTED}" not in ended.err:
            continue  # it was asked for
        count.fault(fault, f"{words}: exit code {ended.code}: {ended.err[-2500:]}")
    if must_work and ended.code:
        count.fault("wrong exit code", f"{words}: {ended.code}: {ended.err[-500:]}")
    elif ended.code in (1, 2) and "--debug" not in words and len(ended.err.strip().splitlines()) > 12:
        count.fault("many lines", f"{words}: {ended.err[-2500:]}")
    count.ended[f"exit code {ended.code}"] += 1


def _own(folder: Path) -> dict[str, str]:
    """A hash of each of the user's files."""
    found = {}
    for name in _OWN:
        path = folder / name
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "gone"
    return found
