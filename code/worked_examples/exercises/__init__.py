"""Checks of the reader's own functions, one for each exercise of the book.

Each is called with the function: ``check_weights(my_weights)``.
"""

from worked_examples.exercises.block import *  # noqa: F403
from worked_examples.exercises.costs import *  # noqa: F403
from worked_examples.exercises.decoder import *  # noqa: F403
from worked_examples.exercises.heads import *  # noqa: F403
from worked_examples.exercises.lookup import *  # noqa: F403
from worked_examples.exercises.masking import *  # noqa: F403
from worked_examples.exercises.positions import *  # noqa: F403
from worked_examples.exercises.recurrence import *  # noqa: F403
from worked_examples.exercises.scaling import *  # noqa: F403
from worked_examples.exercises.sentences import *  # noqa: F403
from worked_examples.exercises.series import *  # noqa: F403
