"""Forms of what is said once the proposals are read: choose, combine, act on them, be done."""

from asap.chat.answers.form import Form
from asap.chat.answers.other_runs.both_changes import asks_both_changes, both_changes
from asap.chat.answers.other_runs.chips_limit import chips_limit, limits_chips
from asap.chat.answers.other_runs.which_one import asks_which_one, which_one
from asap.chat.answers.proposals.combined import asks_combined, combined
from asap.chat.answers.proposals.order.ranking import proposals
from asap.chat.answers.proposals.testing.deadlines import deadline, names_deadline
from asap.chat.answers.proposals.testing.done import asks_done, asks_what_is_left, done
from asap.chat.answers.proposals.too_good import doubts_gain, what_gain_rests_on
from asap.chat.answers.single_plans.guessed import beside_guess, guesses_step
from asap.chat.answers.single_plans.why_degree import asks_why_degree, why_degree
from asap.chat.answers.single_plans.without_axis import asks_without_axis, without_axis
from asap.chat.answers.talk.actions import action, asks_action
from asap.chat.answers.talk.copied import copied, tells_origin
from asap.chat.answers.talk.saved_state import asks_saved_state, saved_state
from asap.chat.answers.talk.two_figures import ask_which_is_which, reports_two_figures
from asap.chat.answers.this_run.capture import asks_profiling, capture
from asap.chat.understanding.topics.topics import Topic

CLOSING_FORMS: tuple[Form, ...] = (
    Form(lambda c, q: guesses_step(q), beside_guess, Topic.OPINION),
    Form(lambda c, q: reports_two_figures(q), ask_which_is_which, Topic.REPORTED),
    Form(lambda c, q: tells_origin(q), copied, Topic.RUN),
    Form(lambda c, q: asks_action(q), action, Topic.OUT_OF_SCOPE),
    Form(lambda c, q: asks_done(q), done, Topic.FIRST),
    Form(lambda c, q: asks_which_one(q), which_one, Topic.FIRST),
    Form(lambda c, q: asks_what_is_left(q), lambda c, a, q: proposals(c, a), Topic.PROPOSALS),
    Form(lambda c, q: asks_both_changes(q), both_changes, Topic.WHAT_IF),
    Form(asks_combined, combined, Topic.COMPARE),
    Form(lambda c, q: asks_saved_state(q), saved_state, Topic.AFTERWARDS),
    Form(doubts_gain, what_gain_rests_on, Topic.SURE),
    Form(asks_why_degree, why_degree, Topic.EXPLAIN),
    Form(lambda c, q: asks_profiling(q), lambda c, a, q: capture(c, a), Topic.CAPTURE),
    Form(asks_without_axis, without_axis, Topic.COMPARE),
    Form(lambda c, q: limits_chips(q), chips_limit, Topic.WHAT_IF),
    Form(lambda c, q: names_deadline(q), deadline, Topic.TEST_COST),
)
