# The public names. The stub is what type checkers read and what the package itself imports from, on first use.
# No file is called as a name in it: the file would take the name's place.
from .boolean import boolean_figure as boolean_figure
from .forest import differences as differences
from .lines import curves as curves
from .maps import heat_maps as heat_maps
from .output import save as save
from .output import svg as svg
from .points import dots as dots
from .points import scatter as scatter
from .profile import profile_figure as profile_figure
from .series import Series as Series
from .style import Look as Look
from .style import looks as looks
