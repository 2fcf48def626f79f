"""A picture of two spaces to explore: a part of a web page, drawn by bokeh, an extra."""

import importlib.util
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from common import csls
from common.alignment import Aligner
from common.linear import unit
from isthmus.align.files import Space
from isthmus.pages import filled

MAX_ROWS = 2_000  # of each space
MAX_PAIRED = 1_500  # of these, rows of pairs
NEAREST = 5
MAX_LETTERS = 300  # of a text
MISSING = "install bokeh, pip install 'isthmus[explore]'"
# Programs in the page: `points`, `lines` and `list` are what is drawn, see `_drawn`.
JOIN = """const d = points.data, join = (i, others) => {
  lines.data = {xs: others.map(j => [d.x[i], d.x[j]]), ys: others.map(j => [d.y[i], d.y[j]])}; };
"""
HOVER = """const i = cb_data.index.indices[0];
join(i, i == null || d.partner[i] < 0 ? [] : [d.partner[i]]);"""
CHOOSE = """const i = cb_obj.indices[0], near = i == null ? [] : d.nearest[i];
join(i, near);
const found = near.map((j, k) => `${d.cosine[i][k].toFixed(2)}  ${d.text[j]}`);
if (i != null) list.text = [`${d.text[i]} (${d.space[i]})`, ...found].join("\\n");"""
SEARCH = """const texts = Array.from(points.data.text);
const wanted = cb_obj.value_input.trim().toLowerCase();
const found = [...texts.keys()].filter(i => wanted && texts[i].toLowerCase().includes(wanted));
points.selected.indices = found.sort((i, j) => texts[i].length - texts[j].length);
if (!found.length) list.text = wanted ? "No row that is shown has this in its text." : "";"""
LIST: dict[str, str | None] = {"white-space": "pre-wrap", "min-height": "8em", "font-size": "1rem"}


class View(NamedTuple):
    """Two spaces, the map of the first onto the second, and pairs (source row, target row)."""

    aligner: Aligner
    source: Space
    target: Space
    pairs: Int[np.ndarray, "k 2"]
    confidence: Float[np.ndarray, " k"] | None = None  # None: among the rows that are shown


def points(view: View) -> pd.DataFrame:
    """What is drawn, a row for each point, those of the source first.

    `partner` and `nearest`, of the other space, are numbers of points; without a partner it is -1.
    """
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(view.pairs))[:MAX_PAIRED]
    names = f"{view.source.name}, mapped", view.target.name
    rows, ends, tables = [], [], []
    for space, name, paired in zip(view[1:3], names, view.pairs[chosen].T, strict=True):
        known, place = np.unique(paired, return_inverse=True)
        others = rng.permutation(np.setdiff1d(np.arange(len(space.words)), known))
        rows.append(np.concatenate([known, others[: MAX_ROWS - len(known)]]))
        ends.append(place)
        tables.append(pd.DataFrame({"text": [space.words[row] for row in rows[-1]], "space": name}))
    mapped = unit(np.asarray(view.aligner.apply(view.source.vectors[rows[0]])))
    keys = unit(np.asarray(view.aligner.normalise_target(view.target.vectors[rows[1]])))
    sure = np.asarray(csls.confidence(mapped, keys, *ends))
    if view.confidence is not None:
        sure = view.confidence[chosen]
    order = np.argsort(sure)  # of several pairs of a row the surest is assigned last
    first, second = ends[0][order], ends[1][order] + len(mapped)
    table = pd.concat(tables, ignore_index=True).assign(partner=-1, confidence=np.nan)
    for one, other in ((first, second), (second, first)):
        table.loc[one, "partner"], table.loc[one, "confidence"] = other, sure[order]
    nearest = []
    for similarity, offset in ((mapped @ keys.T, len(mapped)), (keys @ mapped.T, 0)):
        best = np.argsort(-similarity, axis=1)[:, :NEAREST]
        cosine = np.take_along_axis(similarity, best, axis=1)
        nearest += zip((best + offset).tolist(), cosine.tolist(), strict=True)
    vectors = np.concatenate([mapped, keys])
    from sklearn.decomposition import PCA  # whose import takes a second

    # t-SNE of so many points takes 46 s of a core, more than `isthmus migrate` itself.
    table["x"], table["y"] = PCA(2, random_state=0).fit_transform(vectors).T
    table["nearest"], table["cosine"] = zip(*nearest, strict=True)
    table["text"] = table["text"].str.slice(stop=MAX_LETTERS)
    return table


def part(views: Sequence[View]) -> str:
    """A picture of each view as a part of a page; without bokeh a sentence that names the extra."""
    if importlib.util.find_spec("bokeh") is None:
        return f"<p>For a picture of both spaces to explore, {MISSING}, and run this again.</p>"
    from bokeh.embed import components
    from bokeh.resources import Resources

    script, drawn = components([_drawn(points(view)) for view in views])
    library = Resources(mode="inline", components=["bokeh", "bokeh-widgets"]).render()
    caption = filled("picture.html", rows=f"{MAX_ROWS:,}", paired=f"{MAX_PAIRED:,}")
    return "\n".join([caption, *drawn, library, script])


def _drawn(table: pd.DataFrame):
    """The plot, its box for searches and the list of what is nearest, of bokeh."""
    from bokeh.layouts import column
    from bokeh.models import ColumnDataSource, CustomJS, Div, HoverTool, TextInput
    from bokeh.plotting import figure
    from bokeh.transform import factor_mark, linear_cmap

    tools = "pan,box_zoom,wheel_zoom,tap,reset"
    plot = figure(height=600, sizing_mode="stretch_width", tools=tools)
    plot.axis.visible = plot.grid.visible = False
    of_partner, of_nearest = (ColumnDataSource({"xs": [], "ys": []}) for _ in range(2))
    plot.multi_line("xs", "ys", source=of_nearest, color="#D55E00", level="overlay")
    plot.multi_line("xs", "ys", source=of_partner, color="black", level="overlay")
    source = ColumnDataSource(table.to_dict("list"))
    colour = linear_cmap("confidence", "Viridis256", 0, 1, nan_color="#BBBBBB")
    marker = factor_mark("space", ["circle", "triangle"], list(table["space"].unique()))
    look = {"color": colour, "marker": marker, "legend_group": "space", "size": 7, "alpha": 0.7}
    dots = plot.scatter("x", "y", source=source, nonselection_alpha=0.15, **look)
    plot.add_layout(plot.legend[0], "above")
    plot.legend.orientation = "horizontal"
    plot.add_layout(dots.construct_color_bar(title="confidence"), "right")
    box = TextInput(title="Search the texts", placeholder="a part of a text")
    nearest = Div(render_as_text=True, disable_math=True, styles=LIST)
    shared = {"points": source, "list": nearest}
    hover = CustomJS(args=shared | {"lines": of_partner}, code=JOIN + HOVER)
    shown = [("", "@text"), ("space", "@space"), ("confidence", "@confidence{0.00}")]
    plot.add_tools(HoverTool(renderers=[dots], tooltips=shown, callback=hover))
    choose = CustomJS(args=shared | {"lines": of_nearest}, code=JOIN + CHOOSE)
    source.selected.js_on_change("indices", choose)
    box.js_on_change("value_input", CustomJS(args=shared, code=SEARCH))
    return column(box, nearest, plot, sizing_mode="stretch_width")
