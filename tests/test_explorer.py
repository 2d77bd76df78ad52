"""Explorers: one declaration, two faces, and a view that answers for every setting."""

import sys
from html.parser import HTMLParser

import ipywidgets
import numpy as np
import pytest

from worked_examples import explorers
from worked_examples.controls import Choice, Slider, Steps, Switch
from worked_examples.explorer import Explorer

EXPLORERS = pytest.mark.parametrize("explorer", explorers.ALL.values(), ids=explorers.ALL)


class Page(HTMLParser):
    """Read a page face: its controls, labels and ids, and that every tag is closed."""

    VOID = {"input", "br", "meta"}

    def __init__(self, html):
        super().__init__()
        self.open, self.controls, self.exact, self.labels, self.ids = [], {}, [], set(), []
        self.feed(html)
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        if attributes.get("class") == "explorer-exact":
            self.exact.append(attributes)
        elif tag in ("input", "select"):
            self.controls[attributes["name"]] = attributes
        if tag == "label":
            self.labels.add(attributes["for"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def some_values(control):
    """Return the ends, the default and a few between, as the control's widget may hand them."""
    if isinstance(control, Slider):
        middle = control.minimum + 0.37 * (control.maximum - control.minimum)
        return [control.minimum, control.maximum, control.default, control.check(middle),
                control.check(min(control.minimum + control.step, control.maximum))]  # fmt: skip
    if isinstance(control, Steps):
        return list(control.values)
    return list(control.options) if isinstance(control, Choice) else [True, False]


@EXPLORERS
def test_the_page_has_a_named_control_for_each_argument(explorer):
    page = Page(explorer.page())
    assert set(page.controls) == set(explorer.defaults)
    assert page.labels == {attributes["id"] for attributes in page.controls.values()}
    assert len(set(page.ids)) == len(page.ids)
    sliders = [c for c in explorer.controls if isinstance(c, (Slider, Steps))]
    names = [attributes["aria-label"] for attributes in page.exact]
    assert names == [f"{control.label}: exact value" for control in sliders]
    assert "<fieldset disabled>" in explorer.page()
    assert f'data-explorer="{explorer.name}"' in explorer.page()
    assert explorer.result() in explorer.page()


@EXPLORERS
def test_every_setting_gives_finite_well_formed_html(explorer):
    rng = np.random.default_rng(0)
    settings = [
        {control.name: value} for control in explorer.controls for value in some_values(control)
    ]
    for _ in range(60):
        settings.append(
            {
                control.name: (choices := some_values(control))[rng.integers(len(choices))]
                for control in explorer.controls
            }
        )
    with np.errstate(all="raise", under="ignore"):
        for setting in settings:
            html = explorer.result(**setting)
            Page(html)
            assert "<svg" in html
            assert ">nan<" not in html
            assert html == explorer.result(**setting)  # pure: the same again


@EXPLORERS
def test_the_result_follows_each_control(explorer):
    for control in explorer.controls:
        results = {explorer.result(**{control.name: value}) for value in some_values(control)}
        assert len(results) > 1, f"{control.name} changes nothing"


@EXPLORERS
def test_the_widget_recomputes_on_a_move(explorer):
    box = explorer.widget()
    assert box.children[-1].value.count("<svg") >= 1
    assert explorer.result() in box.children[-1].value
    control = explorer.controls[0]
    widget = next(w for row in box.children[1:-1] for w in row.children if hasattr(w, "observe")
                  and not isinstance(w, ipywidgets.Label))  # fmt: skip
    value = next(v for v in some_values(control) if v != control.default)
    widget.value = value
    assert explorer.result(**{control.name: value}) in box.children[-1].value


@EXPLORERS
def test_reset_puts_every_control_of_the_widget_back(explorer):
    box = explorer.widget()
    reset = box.children[0].children[-1]
    assert reset.disabled
    widgets = [w for row in box.children[1:-1] for w in row.children
               if not isinstance(w, ipywidgets.Label)]  # fmt: skip
    for control, widget in zip(explorer.controls, widgets, strict=True):
        widget.value = next(v for v in some_values(control) if v != control.default)
    assert not reset.disabled
    assert explorer.result() not in box.children[-1].value
    reset.click()
    assert reset.disabled
    assert explorer.result() in box.children[-1].value


@EXPLORERS
def test_unknown_and_impossible_values_are_named(explorer):
    with pytest.raises(ValueError, match="nonsense"):
        explorer.result(nonsense=1)
    name = explorer.controls[0].name
    with pytest.raises(ValueError, match=f"{name} takes .*got 'much'"):
        explorer.result(**{name: "much"})
    with pytest.raises(ValueError, match=name):
        explorer.result(**{name: 1e9})


def test_names_are_unique():
    declared = [value for value in vars(explorers).values() if isinstance(value, Explorer)]
    assert len(explorers.ALL) == len(declared) >= 4
    assert all(name == explorer.name for name, explorer in explorers.ALL.items())


def test_a_bundle_offers_widget_and_page_and_colab_the_widget_alone(monkeypatch):
    explorer = explorers.SELECT
    view = "application/vnd.jupyter.widget-view+json"
    assert set(explorer._repr_mimebundle_()) == {"text/plain", "text/html", view}
    monkeypatch.setitem(sys.modules, "google.colab", sys)
    assert set(explorer._repr_mimebundle_()) == {"text/plain", view}


def test_without_ipywidgets_the_page_is_shown(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert set(explorers.SELECT._repr_mimebundle_()) == {"text/plain", "text/html"}


@pytest.mark.parametrize("version", ["5.2.3", "7.6.5"])
def test_an_old_ipywidgets_gets_one_sentence_that_says_what_to_do(monkeypatch, version):
    monkeypatch.setattr(ipywidgets, "__version__", version)
    shown = explorers.SELECT._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert f"ipywidgets {version}, which is too old for them, so run" in shown["text/html"]
    assert "pip install --upgrade ipywidgets" in shown["text/html"]


@pytest.mark.parametrize("version", ["7.7.1", "8.1.9", "10.0.0a1"])
def test_other_ipywidgets_show_the_widget(monkeypatch, version):
    monkeypatch.setattr(ipywidgets, "__version__", version)
    assert "application/vnd.jupyter.widget-view+json" in explorers.SELECT._repr_mimebundle_()


def test_an_error_in_a_view_is_shown_and_the_next_move_works():
    def view(*, x):
        if x == 1:
            raise RuntimeError("<no> such x")
        return f"<p>{x}</p>"

    box = Explorer("trial", "Trial", view, [Slider("x", "x", 0, 3, 1, 0)]).widget()
    slider = box.children[1].children[0]
    slider.value = 1
    assert "RuntimeError: &lt;no&gt; such x" in box.children[-1].value
    slider.value = 2
    assert "<p>2</p>" in box.children[-1].value
    assert "RuntimeError" not in box.children[-1].value


@pytest.mark.parametrize(
    ("control", "came", "value"),
    [
        (Slider("x", "x", 0, 10, 1, 5), "7", 7),
        (Slider("x", "x", 0, 10, 1, 5), 6.6, 7),
        (Slider("x", "x", -1.0, 1.0, 0.1, 0.0), 0.30000000000000004, 0.3),
        (Slider("x", "x", 0.0, 1.0, 0.3, 0.0), 1.0, 0.9),
        (Steps("d", "d", (1, 2, 4), 1), 4, 4),
        (Choice("c", "c", ("a", "b"), "a"), "b", "b"),
        (Switch("s", "s", True), False, False),
    ],
)
def test_controls_take_what_lies_on_their_grid(control, came, value):
    checked = control.check(came)
    assert checked == value
    assert type(checked) is type(value)


@pytest.mark.parametrize(
    ("control", "came"),
    [
        (Slider("x", "x", 0, 10, 1, 5), 11),
        (Slider("x", "x", 0, 10, 1, 5), float("nan")),
        (Slider("x", "x", 0, 10, 1, 5), None),
        (Steps("d", "d", (1, 2, 4), 1), 3),
        (Choice("c", "c", ("a", "b"), "a"), "z"),
        (Switch("s", "s", True), 1),
    ],
)
def test_controls_refuse_the_rest_and_show_it(control, came):
    with pytest.raises(ValueError, match="got"):
        control.check(came)


def test_a_default_off_the_range_is_refused():
    with pytest.raises(ValueError, match="got 9"):
        Explorer("t", "t", str, [Slider("x", "x", 0, 3, 1, 9)])


def test_importing_the_explorers_needs_numpy_alone():
    """The browser runs them: whatever else they import would have to be loaded there."""
    import subprocess

    code = (
        "import sys; from worked_examples import explorers; explorers.ALL['select'].page();"
        "heavy = {'ipywidgets', 'IPython', 'pandas', 'matplotlib', 'torch'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    path = next(p for p in sys.path if p.endswith("code"))
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("value", [10**400, np.nan, "x", None, [1]])
def test_a_slider_names_what_is_no_number_of_its_range(value):
    with pytest.raises(ValueError, match="x takes a number from 0 to 3; got"):
        Slider("x", "x", 0, 3, 1, 2).check(value)
