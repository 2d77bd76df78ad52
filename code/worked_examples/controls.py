"""The controls of an explorer, each declared once and shown with two faces.

A control knows its name (the view's argument), its label, what values it takes and where it
starts. `html` writes it as a native control for the website; `widget` makes the ipywidgets
control for Jupyter and Colab. `check` turns what came into a value that the view can take.
"""

import json
from dataclasses import dataclass

from worked_examples.views.markup import escape

__all__ = ["Choice", "Slider", "Steps", "Switch"]


@dataclass(frozen=True)
class _Control:
    name: str
    label: str

    def html(self, prefix, value):
        """Write the control for the page: its label, a slider, and a field for the exact value."""
        identity = f"{prefix}-{self.name}"
        label = escape(self._full_label())
        attributes = f'class="explorer-exact" aria-label="{label}: exact value"'
        return (
            f'<div class="explorer-control"><label for="{identity}">{label}</label>'
            f"{self._input(identity, value)}{self._exact(attributes, value)}</div>"
        )

    def _full_label(self):
        """Write the label, with the unit where there is one."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    def reading(self, value):
        """Write a value as the control shows it, with its unit."""
        return str(value)

    def _error(self, value, allowed):
        return ValueError(f"{self.name} takes {allowed}; got {value!r}")


@dataclass(frozen=True)
class Slider(_Control):
    """Take numbers from `minimum` to `maximum`, `step` apart.

    Raises
    ------
    ValueError
        From `check`, if a value is no number or lies outside.
    """

    minimum: float
    maximum: float
    step: float
    default: float
    unit: str = ""
    group: str = ""

    @property
    def _whole(self):
        return all(isinstance(n, int) for n in (self.minimum, self.maximum, self.step))

    def check(self, value):
        """Return the value as a number on the slider's grid."""
        allowed = f"a number from {self.minimum} to {self.maximum}"
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise self._error(value, allowed) from None
        if not self.minimum <= number <= self.maximum:
            raise self._error(value, allowed)
        steps = round((number - self.minimum) / self.step)
        number = min(self.minimum + steps * self.step, self.maximum)
        return int(number) if self._whole else round(number, 10)

    @property
    def _decimals(self):
        return 0 if self._whole else len(str(self.step).partition(".")[2])

    def reading(self, value):
        """Write the number with the decimals of one step, and the unit."""
        return f"{value:.{self._decimals}f} {self.unit}".strip()

    def _input(self, identity, value):
        return (
            f'<input type="range" id="{identity}" name="{self.name}" min="{self.minimum}" '
            f'max="{self.maximum}" step="{self.step}" value="{value}" '
            f'data-decimals="{self._decimals}" data-unit="{escape(self.unit)}" '
            f'aria-valuetext="{escape(self.reading(value))}">'
        )

    def _exact(self, attributes, value):
        return (
            f'<input type="number" {attributes} min="{self.minimum}" max="{self.maximum}" '
            f'step="{self.step}" value="{value:.{self._decimals}f}">'
        )

    def ends(self):
        """Return the least and the greatest value."""
        return self.minimum, self.maximum

    def widget(self, widgets, style):
        """Make an ipywidgets slider."""
        kind = widgets.IntSlider if self._whole else widgets.FloatSlider
        return kind(
            value=self.default, min=self.minimum, max=self.maximum, step=self.step,
            description=self._full_label(), **style,
        )  # fmt: skip


@dataclass(frozen=True)
class Steps(_Control):
    """Take one of a list of values in order, as powers of two, on a slider.

    On the page the slider moves over the list's indices, and a list beside it holds the same;
    `data-values` holds the values, and `data-readings` how each is read out.
    """

    values: tuple
    default: object
    unit: str = ""
    group: str = ""

    def check(self, value):
        """Return the listed value that equals this one."""
        for listed in self.values:
            if value == listed:
                return listed
        raise self._error(value, "one of " + ", ".join(map(str, self.values)))

    def reading(self, value):
        """Write the listed value and the unit."""
        return f"{value} {self.unit}".strip()

    def _input(self, identity, value):
        values = escape(json.dumps(self.values))
        readings = escape(json.dumps([self.reading(listed) for listed in self.values]))
        return (
            f'<input type="range" id="{identity}" name="{self.name}" min="0" '
            f'max="{len(self.values) - 1}" step="1" value="{self.values.index(value)}" '
            f'data-values="{values}" data-readings="{readings}" '
            f'aria-valuetext="{escape(self.reading(value))}">'
        )

    def _exact(self, attributes, value):
        options = "".join(
            f'<option value="{i}"{" selected" if listed == value else ""}>{escape(listed)}</option>'
            for i, listed in enumerate(self.values)
        )
        return f"<select {attributes}>{options}</select>"

    def ends(self):
        """Return the first and the last value of the list."""
        return self.values[0], self.values[-1]

    def widget(self, widgets, style):
        """Make an ipywidgets slider over the list."""
        return widgets.SelectionSlider(
            options=self.values, value=self.default, description=self.label, **style
        )


@dataclass(frozen=True)
class Choice(_Control):
    """Take one of a few named options; the view gets the name."""

    options: tuple
    default: str
    group: str = ""

    def check(self, value):
        """Return the option of this name."""
        if value not in self.options:
            raise self._error(value, "one of " + ", ".join(map(repr, self.options)))
        return value

    def html(self, prefix, value):
        """Write the list; it shows its own value, so it needs no separate reading."""
        identity = f"{prefix}-{self.name}"
        options = "".join(
            f"<option{' selected' if option == value else ''}>{escape(option)}</option>"
            for option in self.options
        )
        return (
            f'<div class="explorer-control"><label for="{identity}">{escape(self.label)}</label>'
            f'<select id="{identity}" name="{self.name}">{options}</select></div>'
        )

    def ends(self):
        """Return every option."""
        return self.options

    def widget(self, widgets, style):
        """Make an ipywidgets list."""
        return widgets.Dropdown(
            options=self.options, value=self.default, description=self.label, **style
        )


@dataclass(frozen=True)
class Switch(_Control):
    """Take yes or no; the view gets a bool."""

    default: bool
    group: str = ""

    def check(self, value):
        """Return the value if it is a bool."""
        if not isinstance(value, bool):
            raise self._error(value, "True or False")
        return value

    def html(self, prefix, value):
        """Write a box to tick; it shows its own value, so it needs no separate reading."""
        identity = f"{prefix}-{self.name}"
        return (
            f'<div class="explorer-control explorer-switch"><input type="checkbox" '
            f'id="{identity}" name="{self.name}"{" checked" if value else ""}>'
            f'<label for="{identity}">{escape(self.label)}</label></div>'
        )

    def ends(self):
        """Return both values."""
        return False, True

    def widget(self, widgets, style):
        """Make an ipywidgets box to tick."""
        return widgets.Checkbox(
            value=self.default, description=self.label, indent=False, layout=style["layout"]
        )
