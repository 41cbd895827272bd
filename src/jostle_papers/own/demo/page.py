"""The demo's records as a page."""

from collections.abc import Iterator

from jostle.base.store import Record, Store
from jostle.estimates import Comparison, Difference, Measurement
from jostle.figures import Series, curves, differences, heat_maps, svg
from jostle.report import Entry, Page, Section, Table
from jostle_papers.own.demo.findings import findings, headline


def page(store: Store) -> Page:
    """The report of a finished demo."""
    settings, origin = store["settings"], store["provenance"]
    sections = [
        _over_training(store),
        _against_noise(store),
        _table(store),
        _pairs(store),
        _where(store),
        _blank(store),
    ]
    return Page(
        title="Jostle one patch: does the prediction hold?",
        lead=headline(sweep(store)),
        sections=sections,
        settings={
            "digits": f"{settings['dataset']}, training part",
            "token": f"a patch of {settings['patch']} x {settings['patch']} pixels",
            "jostle": "Gaussian noise added to one patch, pixels in [-1, 1]",
            "sensitivity": "share of (digit, patch, noise) whose prediction changes",
            "seed": str(settings["seed"]),
        },
        footer=f"Made by jostle {origin['jostle']} with torch {origin['torch']}, {origin['time']}.",
        data={key: store[key] for key in store if key != "example"},
    )


def sweep(store: Store) -> dict[float, Comparison]:
    """The comparison of all networks at each noise level."""
    return {std: Comparison.from_dict(store[f"sweep/{std:g}"]) for std in store["settings"]["stds"]}


def epochs(store: Store, name: str) -> Iterator[Record]:
    """The records of a network's epochs, in order."""
    for number in range(store[f"{name}/trained"]["epochs"] + 1):
        yield store[f"{name}/epoch-{number}"]


def noise_series(store: Store) -> list[Series]:
    """Sensitivity against noise, a curve a network."""
    levels = sweep(store)
    parts = {name: [comparison[name] for comparison in levels.values()] for name in store["settings"]["networks"]}
    return [
        Series(name, list(levels), [m.value for m in ms], [m.low for m in ms], [m.high for m in ms])
        for name, ms in parts.items()
    ]


def _over_training(store: Store) -> Section:
    settings, series = store["settings"], []
    for name in settings["networks"]:
        records = list(epochs(store, name))
        series.append(
            Series(
                name,
                list(range(len(records))),
                [record["value"] for record in records],
                [record["low"] for record in records],
                [record["high"] for record in records],
            )
        )
    figure = curves(series, x_label="epochs of training", y_label="sensitivity")
    std = settings["training_std"]
    return Section(
        title="While learning",
        text=[
            f"Sensitivity to noise of std {std:g} in one patch, after every epoch until the network classifies "
            f"{settings['target_accuracy']:.0%} of its training digits right, or {settings['max_epochs']} epochs. "
            "Bands are 95 % intervals, valid although each measurement stopped as soon as it was precise enough.",
        ],
        figure_svg=svg(figure),
        caption=f"Sensitivity over training, noise of std {std:g}.",
        alt="Curves of sensitivity over epochs, one for each network, with bands.",
    )


def _against_noise(store: Store) -> Section:
    figure = curves(noise_series(store), x_label="std of the noise", y_label="sensitivity", log_x=True, log_y=True)
    return Section(
        title="Against the strength of the noise",
        text=findings(sweep(store)),
        figure_svg=svg(figure),
        caption="Sensitivity after training against the std of the noise; same digits, patches and noise "
        "directions for all networks and all strengths. Bands are 95 % intervals.",
        alt="Curves of sensitivity against noise, one for each network, on logarithmic axes, with bands.",
    )


def _table(store: Store) -> Section:
    std, rows = store["settings"]["training_std"], []
    comparison = sweep(store).get(std)
    for name in store["settings"]["networks"]:
        trained = store[f"{name}/trained"]
        m = comparison[name] if comparison else None
        last = list(epochs(store, name))[-1]
        value, low, high = (m.value, m.low, m.high) if m else (last["value"], last["low"], last["high"])
        passes = m.passes if m else last["passes"]
        rows.append(
            [
                name,
                Entry(f"{trained['parameters']:,}", trained["parameters"]),
                trained["epochs"],
                Entry(f"{trained['train_accuracy']:.1%}", trained["train_accuracy"]),
                Entry(f"{trained['test_accuracy']:.1%}", trained["test_accuracy"]),
                Entry(f"{value:.4f}", value),
                Entry(f"[{low:.4f}, {high:.4f}]", low),
                Entry(f"{passes:,}", passes),
            ]
        )
    columns = [
        "network",
        "parameters",
        "epochs",
        "training accuracy",
        "unseen digits",
        "sensitivity",
        "95 % interval",
        "passes",
    ]
    return Section(
        title="Side by side",
        text=[
            f"{_matched(store)} On unseen digits they differ, and a less accurate network is not excused by a low "
            "sensitivity. Each network was trained once: intervals are for these digits and these weights, and do not "
            "tell how another training run would come out."
        ],
        table=Table(columns, rows, caption=f"Sensitivity to noise of std {std:g} in one patch."),
    )


def _matched(store: Store) -> str:
    """Whether all networks reached the training accuracy at which they are compared."""
    short = [name for name in store["settings"]["networks"] if store[f"{name}/trained"]["stopped"] != "target accuracy"]
    if not short:
        return "Networks are compared at matched training accuracy."
    return f"Not at matched training accuracy: {', '.join(short)} ended training before reaching it."


def _pairs(store: Store) -> Section:
    levels = sweep(store)
    std = store["settings"]["training_std"] if store["settings"]["training_std"] in levels else next(iter(levels))
    pairs = [(pair.first, pair.second) for pair in levels[std].differences]
    rows = [[Entry(f"{a} - {b}"), *(_signed(levels[level].difference(a, b)) for level in levels)] for a, b in pairs]
    return Section(
        title="Pair by pair, on the same noise",
        text=[
            "Each difference is taken trial by trial: the same digit, patch and noise for both networks. "
            "An interval that excludes zero tells them apart; of pairs that are truly equal, at most about one in "
            "twenty does so by chance."
        ],
        figure_svg=svg(differences(levels[std].differences)),
        caption=f"Differences of sensitivity at std {std:g}.",
        alt="Differences of sensitivity between pairs of networks with their intervals.",
        table=Table(
            ["pair", *(f"std {level:g}" for level in levels)],
            rows,
            caption="Differences at all noise levels; in brackets where the interval holds zero.",
        ),
    )


def _where(store: Store) -> Section:
    example, settings = store["example"], store["settings"]
    maps = {name: entry["rates"] for name, entry in example["maps"].items()}
    figure = heat_maps(example["picture"], maps, label="share of noise draws that change the prediction")
    return Section(
        title="Where it happens",
        text=[
            f"A {example['label']} of which the networks together are less sure than of 97 % of the digits. "
            f"Each patch was jostled {settings['example_draws']} times with noise of std {settings['training_std']:g}."
        ],
        figure_svg=svg(figure),
        caption="Flip rate by patch.",
        alt="The digit, and for each network a map of how often noise in a patch changes the prediction.",
    )


def _blank(store: Store) -> Section:
    settings, kinds = store["settings"], ("blank", "inked")
    stds = (settings["faint_std"], settings["training_std"])
    cells = {(kind, std): Comparison.from_dict(store[f"patches/{kind}/{std:g}"]) for std in stds for kind in kinds}
    rows = [[Entry(name), *(_interval(cell[name]) for cell in cells.values())] for name in settings["networks"]]
    return Section(
        title="Why faint noise can matter",
        text=[
            "Many patches of a digit are blank: all their pixels are equal. This vision transformer normalises each "
            "patch before anything else, so in a blank patch the faintest noise arrives at full size, no smaller than "
            "strong noise would, while in a patch with ink it stays faint. If that is what makes it react to weak "
            "noise, its flips under faint noise sit in blank patches, and stronger noise there adds nothing."
        ],
        table=Table(
            ["network", *(f"{kind}, std {std:g}" for kind, std in cells)],
            rows,
            caption="Sensitivity to noise in blank patches and in patches with ink, with 95 % intervals.",
        ),
    )


def _interval(m: Measurement) -> Entry:
    return Entry(f"{m.value:.3f} [{m.low:.3f}, {m.high:.3f}]", m.value)


def _signed(difference: Difference) -> Entry:
    text = f"{difference.value:+.3f}"
    return Entry(text if difference.low > 0 or difference.high < 0 else f"({text})", difference.value)
