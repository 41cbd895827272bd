"""The demo's records as a page."""

from jostle.estimates import Difference, Measurement
from jostle.figures import Series, curves, differences, heat_maps, svg
from jostle.report import Entry, Page, Section, Table
from jostle.report.page import Value
from jostle_papers.own.demo.findings import findings, headline
from jostle_papers.own.demo.records import DemoRecords, PatchKind


def page(records: DemoRecords) -> Page:
    """The report of a finished demo."""
    settings, origin = records.settings, records.provenance
    sections = [
        _over_training(records),
        _against_noise(records),
        _table(records),
        _pairs(records),
        _where(records),
        _blank(records),
    ]
    return Page(
        title="Jostle one patch: does the prediction hold?",
        lead=headline(records.sweep()),
        sections=sections,
        settings={
            "digits": f"{settings.dataset}, training part",
            "token": f"a patch of {settings.patch} x {settings.patch} pixels",
            "perturbation": "Gaussian noise added to one patch, pixels in [-1, 1]",
            "sensitivity": "share of (digit, patch, noise) whose prediction changes",
            "seed": str(settings.seed),
        },
        footer=f"Made by jostle {origin['jostle']} with torch {origin['torch']}, {origin['time']}.",
        data=records.for_report(),
        meaning="Sensitivity is the share of cases in which noise in one patch of a digit changes the prediction of a "
        "network: 0 is never, 1 is always. Networks are compared at equal training accuracy, so that it is not "
        "just the worse network that is more sensitive.",
        command="jostle demo",
    )


def noise_series(records: DemoRecords) -> list[Series]:
    """Sensitivity against noise, one series for each network."""
    levels = records.sweep()
    parts = {name: [comparison[name] for comparison in levels.values()] for name in records.settings.networks}
    return [
        Series(name, list(levels), [m.value for m in ms], [m.low for m in ms], [m.high for m in ms])
        for name, ms in parts.items()
    ]


def _over_training(records: DemoRecords) -> Section:
    settings, series = records.settings, []
    for name in settings.networks:
        epochs = list(records.epochs(name))
        series.append(
            Series(
                name,
                list(range(len(epochs))),
                [epoch.value for epoch in epochs],
                [epoch.low for epoch in epochs],
                [epoch.high for epoch in epochs],
            )
        )
    figure, narrow = (
        curves(series, x_label="epochs of training", y_label="sensitivity", narrow=narrow) for narrow in (False, True)
    )
    std = settings.training_std
    return Section(
        title="While learning",
        text=[
            f"Sensitivity to noise of std {std:g} in one patch, after every epoch until the network classifies "
            f"{settings.target_accuracy:.0%} of its training digits right, or {settings.max_epochs} epochs. "
            "Bands are 95 % intervals, valid although each measurement stopped as soon as it was precise enough.",
        ],
        figure_svg=svg(figure),
        narrow_svg=svg(narrow),
        caption=f"Sensitivity over training, noise of std {std:g}.",
        alt="Curves of sensitivity over epochs, one for each network, with bands.",
    )


def _against_noise(records: DemoRecords) -> Section:
    figure, narrow = (
        curves(
            noise_series(records),
            x_label="std of the noise",
            y_label="sensitivity",
            log_x=True,
            log_y=True,
            narrow=narrow,
        )
        for narrow in (False, True)
    )
    return Section(
        title="Against the strength of the noise",
        text=findings(records.sweep()),
        figure_svg=svg(figure),
        narrow_svg=svg(narrow),
        caption="Sensitivity after training against the std of the noise; same digits, patches and noise "
        "directions for all networks and all strengths. Bands are 95 % intervals.",
        alt="Curves of sensitivity against noise, one for each network, on logarithmic axes, with bands.",
    )


def _table(records: DemoRecords) -> Section:
    std = records.settings.training_std
    rows: list[list[Value | Entry]] = []
    comparison = records.sweep().get(std)
    for name in records.settings.networks:
        trained = records.trained(name)
        found = comparison[name] if comparison else list(records.epochs(name))[-1]
        rows.append(
            [
                name,
                Entry(f"{trained.parameters:,}", trained.parameters),
                trained.epochs,
                Entry(f"{trained.train_accuracy:.1%}", trained.train_accuracy),
                Entry(f"{trained.test_accuracy:.1%}", trained.test_accuracy),
                Entry(f"{found.value:.4f}", found.value),
                Entry(f"[{found.low:.4f}, {found.high:.4f}]", found.low),
                Entry(f"{found.passes:,}", found.passes),
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
            f"{_matched(records)} On unseen digits they differ, and a less accurate network is not excused by a low "
            "sensitivity. Each network was trained once: intervals are for these digits and these weights, and do not "
            "tell how another training run would come out."
        ],
        table=Table(columns, rows, caption=f"Sensitivity to noise of std {std:g} in one patch."),
    )


def _matched(records: DemoRecords) -> str:
    """Whether all networks reached the training accuracy at which they are compared."""
    short = [name for name in records.settings.networks if records.trained(name).stopped != "target accuracy"]
    if not short:
        return "Networks are compared at matched training accuracy."
    return f"Not at matched training accuracy: {', '.join(short)} ended training before reaching it."


def _pairs(records: DemoRecords) -> Section:
    levels = records.sweep()
    std = records.settings.training_std if records.settings.training_std in levels else next(iter(levels))
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
        narrow_svg=svg(differences(levels[std].differences, narrow=True)),
        caption=f"Differences of sensitivity at std {std:g}.",
        alt="Differences of sensitivity between pairs of networks with their intervals.",
        table=Table(
            ["pair", *(f"std {level:g}" for level in levels)],
            rows,
            caption="Differences at all noise levels; in brackets where the interval holds zero.",
        ),
    )


def _where(records: DemoRecords) -> Section:
    example, settings = records.example(), records.settings
    maps = {name: entry.rates for name, entry in example.maps.items()}
    figure = heat_maps(example.picture, maps, label="share of noise draws that change the prediction")
    return Section(
        title="Where it happens",
        text=[
            f"A {example.label} that the networks find harder than 97 % of the digits. "
            f"Each patch was jostled {settings.example_draws} times with noise of std {settings.training_std:g}."
        ],
        figure_svg=svg(figure),
        caption="Flip rate by patch.",
        alt="The digit, and for each network a map of how often noise in a patch changes the prediction.",
    )


def _blank(records: DemoRecords) -> Section:
    settings = records.settings
    kinds: tuple[PatchKind, ...] = ("blank", "inked")
    stds = (settings.faint_std, settings.training_std)
    found = {(kind, std): records.patches(kind, std) for std in stds for kind in kinds}
    rows = [[Entry(name), *(_interval(one[name]) for one in found.values())] for name in settings.networks]
    return Section(
        title="Why faint noise can matter",
        text=[
            "Many patches of a digit are blank: all their pixels are equal. This vision transformer normalises each "
            "patch before anything else, so in a blank patch the faintest noise arrives at full size, no smaller than "
            "strong noise would, while in a patch with ink it stays faint. If that is what makes it react to weak "
            "noise, its flips under faint noise sit in blank patches, and stronger noise there adds nothing."
        ],
        table=Table(
            ["network", *(f"{kind}, std {std:g}" for kind, std in found)],
            rows,
            caption="Sensitivity to noise in blank patches and in patches with ink, with 95 % intervals.",
        ),
    )


def _interval(m: Measurement) -> Entry:
    return Entry(f"{m.value:.3f} [{m.low:.3f}, {m.high:.3f}]", m.value)


def _signed(difference: Difference) -> Entry:
    text = f"{difference.value:+.3f}"
    return Entry(text if difference.low > 0 or difference.high < 0 else f"({text})", difference.value)
